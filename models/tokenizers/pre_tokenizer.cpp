#include "models/tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <iterator>

namespace rondo::models {

namespace {

using Threes = TextSplitter::Threes;

// As published: in GPT-2's encoder.py and in the tokenizer.json of the models that they are named after. Where llama.cpp
// (src/llama-vocab.cpp, src/unicode.cpp), whose names these are, splits otherwise, it is followed:
// - \p{Lu} and its like are all letters to it, so that tiny_aya and youtu do not cut at capitals; for tekken and gpt-4o it
//   takes letters but a to z, and letters but A to Z, so that only ASCII has cases, and marks are not among them;
// - `(?i:` is for ASCII only, which leaves out the long s, U+017F.
using Expressions = std::string_view[];

constexpr std::string_view kGpt2Words = kByteLevelExpression;
constexpr std::string_view kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekScripts = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr std::string_view kHanAndKana = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kBloomWords = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";
constexpr std::string_view kNumber = R"(\p{N})";
constexpr std::string_view kNumbers = R"(\p{N}+)";
constexpr std::string_view kThreeNumbers = R"(\p{N}{1,3})";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";

// Threes from the right. These look ahead to the end of the digits at each of them, and are done without. llama.cpp takes
// the numbers of every script for the first, whatever is behind them.
constexpr std::string_view kThreesOfNumbers = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kThreesOfDigits = R"((?=(\d{3})+(?!\d)))";

constexpr Expressions kDefault = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, kNumbers, kThreeDigits};
constexpr Expressions kGpt2 = {kGpt2Words};
constexpr Expressions kFalcon = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Words, kThreeDigits};
constexpr Expressions kSmolLm = {kNumber, kGpt2Words};
constexpr Expressions kLlama3 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expressions kJais2 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
    R"(\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|)"
    R"(\s{1,2}(?!\S)|\s{1})"};
constexpr Expressions kMiniCpm5 = {
    kThreeNumbers,
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expressions kQwen2 = {kQwen2Words};
constexpr Expressions kQwen35 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)"};
constexpr Expressions kLaguna = {R"([^\n]+|[\n]+)", kQwen2Words};
constexpr Expressions kUfakZeka = {
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expressions kBailingMoe = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr Expressions kSeedCoder = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expressions kExaoneMoe = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|)"
    R"(\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr Expressions kTekken = {
    R"([^\r\n\p{L}\p{N}]?[^\P{L}a-z]*[^\P{L}A-Z]+|[^\r\n\p{L}\p{N}]?[^\P{L}a-z]+[^\P{L}A-Z]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expressions kGpt4o = {
    R"([^\r\n\p{L}\p{N}]?[^\P{L}a-z]*[^\P{L}A-Z]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[^\P{L}a-z]+[^\P{L}A-Z]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// Letters and marks without a-z, and without A-Z.
constexpr Expressions kGraniteEmbedding = {
    R"([^\r\n\p{L}\p{N}]?[^\s\p{N}\p{P}\p{S}\p{C}a-z]*[^\s\p{N}\p{P}\p{S}\p{C}A-Z]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[^\s\p{N}\p{P}\p{S}\p{C}a-z]+[^\s\p{N}\p{P}\p{S}\p{C}A-Z]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr Expressions kTinyAya = {
    kThreesOfNumbers,
    R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)"};
constexpr Expressions kYoutu = {
    R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|)"
    R"([\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|)"
    R"([\x{3105}-\x{312f}]+|[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
    R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)"};
// Where others have letters, these are without \p{Han}, here as llama.cpp has it.
constexpr Expressions kKimiK2 = {
    R"([\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}\x{2f800}-\x{2fa1f}]+|)"
    R"([^\r\n\p{L}\p{N}]?[^\P{L}\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}\x{2f800}-\x{2fa1f}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// The letters are those of scripts that have cases.
constexpr Expressions kDeepSeekLlm = {
    R"([\r\n])",
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-\x{2af})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1})"
    R"(\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5})"
    R"(\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a})"
    R"(\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b})"
    R"(\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc})"
    R"(\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107})"
    R"(\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139})"
    R"(\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787})"
    R"(\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a})"
    R"(\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2})"
    R"(\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)",
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)",
    R"(\s+$)", kDeepSeekScripts, kNumbers};
constexpr Expressions kDeepSeekCoder = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekScripts, kNumber};
constexpr Expressions kDeepSeek3 = {kThreeNumbers, kHanAndKana, kDeepSeekWords};
constexpr Expressions kSpark = {
    kThreeNumbers, kHanAndKana,
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|)"
    R"(\s+(?!\S)|\s+)",
    kNumber};
// Asian scripts by block, but one range from U+8C48, where llama.cpp has the ideograph that U+F900 is the same as.
constexpr Expressions kAfMoe = {
    kThreesOfNumbers,
    R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{309f}\x{30a0}-\x{30ff}\x{ff65}-\x{ff9f})"
    R"(\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{aa60}-\x{aa7f})"
    R"(\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)",
    kDeepSeekWords};
constexpr Expressions kBloom = {kBloomWords};
constexpr Expressions kViking = {kBloomWords, kNumber};
constexpr Expressions kSuperBpe = {kNumbers, kThreesOfDigits};
constexpr Expressions kChameleon = {R"(<sentinel:[0-9]+>)",
                                    R"(IMGIMG[A-I]{1,4}Z)",
                                    R"([\t\n]|    |  )",
                                    kNumber,
                                    R"([\p{P}!-/:-@\[-`{-~])",
                                    kGpt2Words};

// Names and flags are llama.cpp's. Left out are those whose tokens are not spelled in bytes, as gemma4 and whitespace.
constexpr PreTokenizer kPreTokenizers[] = {
    {"default", kDefault},
    {"gpt-2", kGpt2},
    {"phi-2", kGpt2},
    {"jina-es", kGpt2},
    {"jina-de", kGpt2},
    {"jina-v1-en", kGpt2},
    {"jina-v2-es", kGpt2},
    {"jina-v2-de", kGpt2},
    {"jina-v2-code", kGpt2},
    {"roberta-bpe", kGpt2},
    {"modern-bert", kGpt2},
    {"gigachat", kGpt2},
    {"a.x-4.0", kGpt2},
    {"mellum", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"jais", kGpt2},
    {"trillion", kGpt2},
    {"exaone4", kGpt2},
    {"granite-docling", kGpt2},
    {"falcon", kFalcon},
    {"smollm", kSmolLm},
    {"starcoder", kSmolLm},
    {"refact", kSmolLm},
    {"command-r", kSmolLm},
    {"codeshell", kSmolLm},
    {"exaone", kSmolLm},
    {"minerva-7b", kSmolLm},
    {"mellum2", kSmolLm},
    {"llama-bpe", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"falcon-h1", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"midm-2.0", kLlama3, true, true},
    {"lfm2", kLlama3, true, true},
    {"jina-v5-nano", kLlama3, true, true},
    {"smaug-bpe", kLlama3},
    {"dbrx", kLlama3},
    {"chatglm-bpe", kLlama3},
    {"glm4", kLlama3},
    {"jais-2", kJais2},
    {"minicpm5", kMiniCpm5, true},
    {"qwen2", kQwen2},
    {"deepseek-r1-qwen", kQwen2},
    {"kormo", kQwen2},
    {"f2llmv2", kQwen2},
    {"megrez", kQwen2},
    {"stablelm2", kQwen2},
    {"hunyuan", kQwen2},
    {"solar-open", kQwen2},
    {"grok-2", kQwen2},
    {"qwen35", kQwen35},
    {"laguna", kLaguna},
    {"ufakzeka", kUfakZeka},
    {"bailingmoe", kBailingMoe},
    {"bailingmoe2", kBailingMoe},
    {"llada-moe", kBailingMoe},
    {"seed-coder", kSeedCoder},
    {"exaone-moe", kExaoneMoe},
    {"tekken", kTekken, true, true},
    {"gpt-4o", kGpt4o},
    {"llama4", kGpt4o},
    {"kanana2", kGpt4o},
    {"talkie", kGpt4o},
    {"minimax-m2", kGpt4o},
    {"granite-embed-multi-97m", kGraniteEmbedding, true},
    {"tiny_aya", kTinyAya},
    {"cohere2moe", kTinyAya},
    {"youtu", kYoutu, true},
    {"kimi-k2", kKimiK2},
    {"deepseek-llm", kDeepSeekLlm},
    {"deepseek-coder", kDeepSeekCoder},
    {"deepseek-v3", kDeepSeek3},
    {"hunyuan-dense", kDeepSeek3},
    {"joyai-llm", kDeepSeek3},
    {"hy_v4", kDeepSeek3},
    {"spark2_5", kSpark},
    {"afmoe", kAfMoe},
    {"bloom", kBloom},
    {"poro-chat", kBloom},
    {"gpt3-finnish", kBloom},
    {"viking", kViking},
    {"superbpe", kSuperBpe},
    {"chameleon", kChameleon, false, true},
};

/// How tokenizer.json spells an expression that is otherwise here.
struct Spelling {
  std::string_view published;
  std::string_view here;
};
constexpr Spelling kSpellings[] = {
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
     R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kTekken[0]},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kGpt4o[0]},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     kBailingMoe[0]},
    {R"( ?[^(\s|[.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c}])]+)", kBloomWords},
};

/// `expression` with what is no visible ASCII as `\r`, `\n` or `\x{CODE}`.
std::string with_escapes(std::string_view expression) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t place = 0; place < expression.size();) {
    const TextCharacter next = character_at(expression, place);
    place += next.bytes;
    if (next.code >= ' ' && next.code < 0x7f) {
      out += static_cast<char>(next.code);
    } else if (next.code == '\r' || next.code == '\n') {
      out += next.code == '\r' ? "\\r" : "\\n";
    } else {
      out += "\\x{";
      for (int shift = 20; shift >= 0; shift -= 4) {
        if (shift == 0 || next.code >> shift != 0) out += kDigits[next.code >> shift & 15];
      }
      out += '}';
    }
  }
  return out;
}

/// Cuts `text` as the expressions do that look ahead over digits.
void cut_threes(Threes how, std::string_view text, std::size_t begin, std::vector<std::size_t>& ends) {
  const auto counts = [&](std::uint32_t code) {
    if (how == Threes::kOfNumbers) return unicode_class(code) == UnicodeClass::kNumber;
    return code >= '0' && code <= '9';
  };
  std::size_t last = 0;
  const auto cut = [&](std::size_t place) {
    if (place > last) ends.push_back(begin + place);
    last = place;
  };
  for (std::size_t place = 0; place < text.size();) {
    std::size_t run_end = place, n = 0;
    std::uint32_t behind = 0;  // bytes of the character that the run ends at
    for (; run_end < text.size(); ++n) {
      const TextCharacter next = character_at(text, run_end);
      behind = next.bytes;
      if (!counts(next.code)) break;
      run_end += next.bytes;
    }
    const std::size_t end = run_end < text.size() ? run_end + behind : run_end;
    for (std::size_t left = n; left > 0; --left) {
      if (left % 3 == 0 && (left < n || how == Threes::kOfDigits)) cut(place);
      place += character_at(text, place).bytes;
    }
    if (n > 0 && how == Threes::kOfNumbers) cut(run_end);
    place = end;
  }
  if (!text.empty()) cut(text.size());
}

constexpr Expressions kClip = {R"('s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+)"};

}  // namespace

const PreTokenizer kClipPreTokenizer = {kClipName, kClip};

std::span<const PreTokenizer> pre_tokenizers() { return kPreTokenizers; }

const PreTokenizer* find_pre_tokenizer(std::span<const std::string> expressions) {
  std::vector<std::string> wanted;
  for (const std::string& expression : expressions) {
    wanted.push_back(with_escapes(expression));
    for (const auto& [published, here] : kSpellings) {
      if (wanted.back() == published) wanted.back() = here;
    }
  }
  const auto found = std::find_if(std::begin(kPreTokenizers), std::end(kPreTokenizers), [&](const PreTokenizer& known) {
    return std::equal(known.expressions.begin(), known.expressions.end(), wanted.begin(), wanted.end());
  });
  return found == std::end(kPreTokenizers) ? nullptr : found;
}

TextSplitter::TextSplitter(const PreTokenizer& pre_tokenizer) {
  for (const std::string_view expression : pre_tokenizer.expressions) {
    Threes threes = Threes::kNone;
    if (expression == kThreesOfDigits) threes = Threes::kOfDigits;
    if (expression == kThreesOfNumbers) threes = Threes::kOfNumbers;
    passes_.push_back(Pass{SplitExpression(threes == Threes::kNone ? expression : ""), threes});
  }
}

std::vector<std::size_t> TextSplitter::piece_ends(std::string_view text) const {
  std::vector<std::size_t> ends, next;
  if (!text.empty()) ends.push_back(text.size());
  for (const Pass& pass : passes_) {
    next.clear();
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      const std::string_view piece = text.substr(begin, end - begin);
      if (pass.threes == Threes::kNone) {
        pass.expression.split(piece, begin, next);
      } else {
        cut_threes(pass.threes, piece, begin, next);
      }
      begin = end;
    }
    ends.swap(next);
  }
  return ends;
}

}  // namespace rondo::models
