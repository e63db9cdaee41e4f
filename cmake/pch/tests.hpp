// As common.hpp, with GoogleTest and what tests of the stores share.
#include <gtest/gtest.h>

#include "common.hpp"
#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"
