// Beam search without a device: which hypotheses go on, and which have ended (as Wu et al. 2016, section 7, but with the length
// itself as its penalty, as transformers have it).
//
// Each step is told logits of the next token for every hypothesis that goes on. Of all continuations the 2 B with the highest sum
// of log-probabilities are looked at, best first, of equals the lower beam, then the lower token: an end among the first B makes a result,
// others are the next B hypotheses. A result's score is its sum divided by the number of its tokens, the end included, to the power of
// the length penalty. It is over when there are B results and the best hypothesis, scored at its present length, is no better than
// the worst of them; or when none goes on, and then there may be no result (logits that are no numbers). Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rondo::models {

class BeamSearch {
 public:
  struct Options {
    std::uint32_t n_beams = 4;
    double length_penalty = 1;
    std::uint32_t max_tokens = 0;       ///< of a result; the end counts
    std::vector<std::int32_t> end_ids;  ///< any of these ends a hypothesis
  };
  struct Result {
    std::vector<std::int32_t> tokens;  ///< without the end
    double score = 0;
    bool ended = false;  ///< by an end, and not by max_tokens
  };
  /// A hypothesis that goes on: its last token, and which of those before it extends.
  struct Beam {
    std::int32_t token = 0;
    std::uint32_t parent = 0;
  };

  explicit BeamSearch(Options options) : options_(std::move(options)) { hypotheses_.emplace_back(); }

  /// Hypotheses whose logits the next step needs: 1, then n_beams.
  std::size_t n_beams() const { return hypotheses_.size(); }
  /// `logits`: (n_beams(), n_vocab). What goes on, in order; empty where it is over.
  std::vector<Beam> step(std::span<const float> logits, std::size_t n_vocab);
  bool over() const { return over_; }
  /// Best first, once it is over.
  const std::vector<Result>& results() const { return results_; }

 private:
  struct Hypothesis {
    std::vector<std::int32_t> tokens;
    double sum = 0;
  };
  void add_result(Result result);
  double score_of(double sum, std::size_t n_tokens) const;

  Options options_;
  std::vector<Hypothesis> hypotheses_;
  std::vector<Result> results_;
  bool over_ = false;
};

}  // namespace rondo::models
