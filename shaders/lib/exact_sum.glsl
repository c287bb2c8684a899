// Sums that keep what each addition rounds away (Knuth's two-sum), for results that are small beside their terms.
struct ExactSum {
  float sum;
  float lost;
};

void add_exactly(inout ExactSum total, float x) {
  precise float sum = total.sum + x;
  precise float taken = sum - total.sum;
  precise float lost = (total.sum - (sum - taken)) + (x - taken);
  total.sum = sum;
  total.lost += lost;
}

float value_of(ExactSum total) { return isinf(total.sum) ? total.sum : total.sum + total.lost; }
