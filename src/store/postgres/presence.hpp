// How a server shows that it lives: with every question for the next deadline, once a second, it asks for a lock that
// nobody else wants. Whoever holds that one for a moment sees who waits for it. Unlike a session's name or a row of its
// own it is seen through a pooler and by every role, and nothing of it is left when the server dies.
#pragma once

namespace latchkey::pg {

inline constexpr const char* kShowPresence = "SELECT pg_advisory_xact_lock_shared(7420, hashtext('latchkey.servers'))";
inline constexpr const char* kHoldPresence = "SELECT pg_advisory_xact_lock(7420, hashtext('latchkey.servers'))";
// Servers that wait for whoever holds it.
inline constexpr const char* kPresent =
    "SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = 7420 AND l.objid = "
    "(hashtext('latchkey.servers')::bigint & 4294967295)::oid AND l.objsubid = 2 AND l.mode = 'ShareLock' AND NOT "
    "l.granted AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())";

}  // namespace latchkey::pg
