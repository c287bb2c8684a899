// Whether something is so for some invocation of a workgroup, asked again and again: one barrier each time, since of three words in turn one is asked for, one is
// made zero for the next time, and one may still be read.
shared uint votes[4];  // 16 bytes, as vectors may lie right behind
uint n_votes;

// Before a barrier that comes before the first vote.
void begin_votes(bool first_invocation) {
  if (first_invocation) votes[0] = 0u;
  n_votes = 0u;
}
// By all invocations.
bool vote_some(bool own, bool first_invocation) {
  const uint now = n_votes, next = now == 2u ? 0u : now + 1u;
  if (own) atomicOr(votes[now], 1u);
  if (first_invocation) votes[next] = 0u;
  n_votes = next;
  barrier();
  return votes[now] != 0u;
}
