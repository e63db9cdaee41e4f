// The body of /resolve, for a run and for the members of a dead letter: an operator states the outcome.
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

// A run in doubt may also run again (`rerun`). A failed run is opened again by /retry instead.
enum class Rerun : std::uint8_t { allowed, refused };
// The operator action, or INVALID_ARGUMENT for an invalid body.
Result<Move> make_move(const Resolution& resolution, Rerun rerun);

}  // namespace latchkey::api
