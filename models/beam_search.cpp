#include "models/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rondo::models {

namespace {

struct Candidate {
  double sum = 0;
  std::uint32_t beam = 0;
  std::int32_t token = 0;
  bool operator<(const Candidate& other) const { return sum != other.sum ? sum > other.sum : beam != other.beam ? beam < other.beam : token < other.token; }  // better
};

/// The `n` best continuations of one hypothesis, best first.
void add_best(std::span<const float> logits, double sum, std::uint32_t beam, std::size_t n, std::vector<Candidate>& all) {
  float largest = -std::numeric_limits<float>::infinity();
  for (const float logit : logits) largest = std::fmax(largest, logit);
  double total = 0;
  for (const float logit : logits) total += std::isnan(logit) ? 0 : std::exp(static_cast<double>(logit) - static_cast<double>(largest));
  const double normal = static_cast<double>(largest) + std::log(total);
  if (!std::isfinite(normal)) return;
  const std::size_t begin = all.size();
  const auto first = [&] { return all.begin() + static_cast<std::ptrdiff_t>(begin); };
  float worst = -std::numeric_limits<float>::infinity();  // of those that are kept
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || (all.size() - begin == n && logits[i] <= worst)) continue;
    const Candidate candidate{sum + static_cast<double>(logits[i]) - normal, beam, static_cast<std::int32_t>(i)};
    all.insert(std::upper_bound(first(), all.end(), candidate), candidate);
    if (all.size() - begin > n) all.pop_back();
    worst = logits[static_cast<std::size_t>(all.back().token)];
  }
}

}  // namespace

double BeamSearch::score_of(double sum, std::size_t n_tokens) const { return sum / std::pow(static_cast<double>(std::max<std::size_t>(n_tokens, 1)), options_.length_penalty); }

void BeamSearch::add_result(Result result) {
  const auto is_better = [](const Result& a, const Result& b) { return a.score > b.score; };
  results_.insert(std::upper_bound(results_.begin(), results_.end(), result, is_better), std::move(result));
  if (results_.size() > options_.n_beams) results_.pop_back();
}

std::vector<BeamSearch::Beam> BeamSearch::step(std::span<const float> logits, std::size_t n_vocab) {
  std::vector<Candidate> candidates;
  const std::size_t n_beams = options_.n_beams;
  for (std::size_t beam = 0; beam < hypotheses_.size(); ++beam) add_best(logits.subspan(beam * n_vocab, n_vocab), hypotheses_[beam].sum, static_cast<std::uint32_t>(beam), 2 * n_beams, candidates);
  std::sort(candidates.begin(), candidates.end());
  candidates.resize(std::min(candidates.size(), 2 * n_beams));
  const std::size_t n_tokens = hypotheses_.front().tokens.size() + 1;
  std::vector<Beam> beams;
  std::vector<Hypothesis> next;
  for (std::size_t rank = 0; rank < candidates.size() && beams.size() < n_beams; ++rank) {
    const Candidate& candidate = candidates[rank];
    const bool ends = std::find(options_.end_ids.begin(), options_.end_ids.end(), candidate.token) != options_.end_ids.end();
    if (ends && rank >= n_beams) continue;
    const std::vector<std::int32_t>& tokens = hypotheses_[candidate.beam].tokens;
    if (ends) {
      add_result({tokens, score_of(candidate.sum, n_tokens), true});
      continue;
    }
    beams.push_back({candidate.token, candidate.beam});
    Hypothesis& hypothesis = next.emplace_back(Hypothesis{tokens, candidate.sum});
    hypothesis.tokens.push_back(candidate.token);
  }
  hypotheses_ = std::move(next);
  if (n_tokens >= options_.max_tokens) {
    for (const Hypothesis& hypothesis : hypotheses_) add_result({hypothesis.tokens, score_of(hypothesis.sum, n_tokens), false});
    over_ = true;
  }
  over_ = over_ || hypotheses_.empty() || (results_.size() == n_beams && score_of(hypotheses_.front().sum, n_tokens) <= results_.back().score);
  return over_ ? std::vector<Beam>() : beams;
}

}  // namespace rondo::models
