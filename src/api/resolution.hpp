// What a person says became of a run: the body of /resolve, of a run and of a dead letter's members.
#pragma once

#include <array>
#include <string>

#include "model/requests.hpp"
#include "wire/json_in.hpp"

namespace latchkey::api {

struct Resolution {
  std::string outcome;
  std::string result;  // as sent
  std::string note;
};

// For bodies that are a Resolution, or have one as their base.
template <class Body>
inline constexpr std::array kResolutionMembers{
    wire::Member<Body>{"outcome", [](auto& body, auto& value) { return read_text(value, body.outcome); }},
    wire::Member<Body>{"result",
                       [](auto& body, auto& value) {
                         body.result = value.raw;
                         return wire::Fault{};
                       }},
    wire::Member<Body>{"note", [](auto& body, auto& value) { return read_text(value, body.note); }},
};

// A run in doubt may also be tried again; failed runs are opened again by /retry.
enum class Rerun : std::uint8_t { allowed, refused };
// INVALID_ARGUMENT when it is none.
Result<Move> make_move(const Resolution& resolution, Rerun rerun);

}  // namespace latchkey::api
