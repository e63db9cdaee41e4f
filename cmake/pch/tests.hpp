// As common.hpp, with GoogleTest.
#include <gtest/gtest.h>

#include "common.hpp"
