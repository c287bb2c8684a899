#include "lib/params.h"
RONDO_PARAMS(AttentionTablesParams) {
  uint to;        // word of the output that the first source goes to
  uint counts_0;  // words of each source
  uint counts_1;
  uint counts_2;
  uint counts_3;
  uint counts_4;
  uint counts_5;
  uint from_0;    // first word of each source
  uint from_1;
  uint from_2;
  uint from_3;
  uint from_4;
  uint from_5;
  uint last_0;    // last word of sources 0 and 1, which stands for those behind it too
  uint last_1;
  uint fill_0;    // in the place of sources 0 and 1 where they are absent
  uint fill_1;
  uint present;   // bit i: source i is there
} RONDO_PARAMS_END
