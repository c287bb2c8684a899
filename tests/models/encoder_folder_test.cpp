// Folders of encoders and encoder-decoders that are not as they should be: one line that names file and field or tensor.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/byte_source.h>

#include "models/checkpoint.h"
#include "models/json.h"
#include "tests/support/packed_folder.h"

namespace rondo::models::encoder_folder_test {
namespace {

using rondo::tests::PackedFolder;

Status open(const PackedFolder& folder) {
  const Result<ByteSource> source = open_model(folder.path());
  if (!source.ok()) return source.status();
  return open_checkpoint(*source).status();
}

void expect_refused(const Status& status, std::initializer_list<std::string_view> words) {
  ASSERT_FALSE(status.ok());
  for (const std::string_view word : words) EXPECT_NE(status.message().find(word), std::string::npos) << "'" << word << "' is not in: " << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
}

/// The config with `field` as `value` (JSON), or without it where that is empty.
std::string changed(const PackedFolder& folder, const char* field, const char* value) {
  nlohmann::json config = parse_json(folder.config(), "config").value();
  config.erase(field);
  if (*value != '\0') config[field] = parse_json(value, "value").value();
  return config.dump();
}

struct Change {
  const char *name, *field, *value;
  std::vector<std::string_view> words;
};

class EncoderConfigTest : public ::testing::TestWithParam<Change> {};

TEST_P(EncoderConfigTest, IsRefusedByName) {
  const Change& change = GetParam();
  const PackedFolder folder(change.name);
  ASSERT_TRUE(open(folder).ok()) << open(folder).message();
  folder.write_config(changed(folder, change.field, change.value));
  const Status status = open(folder);
  ASSERT_FALSE(status.ok());
  for (const std::string_view word : change.words) EXPECT_NE(status.message().find(word), std::string::npos) << "'" << word << "' is not in: " << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
}

const Change kChanges[] = {
    {"bert_mlm", "hidden_size", "", {"config.json", "'hidden_size' is missing"}},
    {"bert_mlm", "hidden_size", "0", {"'hidden_size' is 0", "[1,"}},
    {"bert_mlm", "hidden_size", "\"32\"", {"config.json", "hidden_size"}},
    {"bert_mlm", "hidden_size", "33", {"embedding_length", "33", "heads"}},
    {"bert_mlm", "hidden_size", "64", {"token_embd.weight", "(96, 32)"}},
    {"bert_mlm", "num_hidden_layers", "4000000000", {"num_hidden_layers", "[1, 4096]"}},
    {"bert_mlm", "num_hidden_layers", "3", {"blk.2.", "missing"}},
    {"bert_mlm", "num_hidden_layers", "1", {"blk.1.", "none that a bert has"}},
    {"bert_mlm", "num_attention_heads", "0", {"num_attention_heads"}},
    {"bert_mlm", "intermediate_size", "-3", {"intermediate_size"}},
    {"bert_mlm", "intermediate_size", "53", {"ffn_up", "(53, 32)"}},
    {"bert_mlm", "max_position_embeddings", "41", {"position_embd.weight", "(41, 32)"}},
    {"bert_mlm", "max_position_embeddings", "0", {"max_position_embeddings"}},
    {"bert_mlm", "layer_norm_eps", "0", {"layer_norm_epsilon", "positive"}},
    {"bert_mlm", "layer_norm_eps", "2", {"layer_norm_epsilon", "(0, 1)"}},
    {"bert_mlm", "layer_norm_eps", "\"small\"", {"layer_norm_eps", "must be a number"}},
    {"bert_mlm", "hidden_act", "\"mish\"", {"hidden_act", "'mish'", "not there yet"}},
    {"bert_mlm", "hidden_act", "3", {"hidden_act"}},
    {"bert_mlm", "is_decoder", "true", {"is_decoder", "is true", "not there yet"}},
    {"bert_mlm", "position_embedding_type", "\"alibi\"", {"position_embedding_type", "'alibi'", "not there yet"}},
    {"distilbert", "architectures", "[\"DistilBertForMultipleChoice\"]", {"architectures", "DistilBertForMultipleChoice"}},
    {"bert_mlm", "architectures", "\"BertModel\"", {"architectures"}},
    {"bert_relative_key", "max_position_embeddings", "20", {"attn_distance", "(39, 12)"}},
    {"roberta", "pad_token_id", "0", {"pad_token_id", "is 0 instead of 1"}},
    {"roberta", "max_position_embeddings", "2", {"max_position_embeddings", "above 2"}},
    {"nomic_bert", "activation_function", "\"gelu\"", {"activation_function", "'gelu' instead of 'swiglu'"}},
    {"nomic_bert", "rotary_emb_fraction", "0.5", {"rotary_emb_fraction", "0.5"}},
    {"nomic_bert", "prenorm", "true", {"prenorm", "is true"}},
    {"vit_pooled", "image_size", "25", {"patch_size", "does not divide"}},
    {"vit_pooled", "image_size", "[24]", {"image_size", "two"}},
    {"vit_pooled", "image_size", "32", {"position_embd.weight", "(17, 16)"}},
    {"vit_pooled", "patch_size", "[8, 4]", {"patch_size", "not square"}},
    {"vit_pooled", "num_channels", "4", {"patch_embd.weight", "(16, 256)"}},
    {"vit_pooled", "num_channels", "0", {"image_channels", "[1, 64]"}},
    {"clip", "text_config", "", {"text_config"}},
    {"clip", "projection_dim", "", {"'projection_dim' is missing"}},
    {"clip", "projection_dim", "21", {"t.projection.weight", "(21, 16)"}},
    {"m2m100", "decoder_start_token_id", "", {"'decoder_start_token_id' is missing"}},
    {"m2m100", "decoder_start_token_id", "96", {"decoder_start_token_id", "96 tokens"}},
    {"m2m100", "forced_bos_token_id", "1000", {"first_token_id", "1000"}},
    {"m2m100", "decoder_layers", "", {"'decoder_layers' is missing"}},
    {"m2m100", "decoder_layers", "3", {"dec.blk.2.", "missing"}},
    {"m2m100", "decoder_attention_heads", "3", {"decoder_head_count", "does not divide"}},
    {"m2m100", "normalize_before", "false", {"normalize_before", "is false"}},
    {"mbart", "max_position_embeddings", "50", {"enc.position_embd.weight", "(50, 16)"}},
    {"t5_gated", "feed_forward_proj", "\"gated-swish2\"", {"feed_forward_proj", "'swish2'"}},
    {"t5_gated", "relative_attention_num_buckets", "7", {"relative_buckets_count", "even"}},
    {"t5_gated", "relative_attention_num_buckets", "0", {"relative_buckets_count"}},
    {"t5_gated", "relative_attention_max_distance", "2", {"relative_max_distance"}},
    {"t5_gated", "d_kv", "0", {"d_kv"}},
    {"transformer_prenorm", "position_embedding_type", "\"learned\"", {"position_embedding_type", "'learned'"}},
};
INSTANTIATE_TEST_SUITE_P(All, EncoderConfigTest, ::testing::ValuesIn(kChanges), [](const auto& one) { return std::to_string(one.index) + "_" + one.param.name + "_" + one.param.field; });

// Without any one of its tensors a folder is refused, or has another head, pooler or position than before: never silently less.
TEST(EncoderFolderTest, EveryTensorIsMissed) {
  for (const char* name : {"bert_mlm", "bert_cls", "bert_qa", "roberta_cls", "distilbert", "deit", "clip", "m2m100", "mbart", "t5_gated", "nomic_bert", "bert_relative_key_query"}) {
    const PackedFolder folder(name);
    for (const std::string& tensor : folder.weights()) {
      const bool optional = tensor.ends_with(".bias") || tensor.find("token_type") != std::string::npos || tensor.find("distillation") != std::string::npos || tensor == "final_logits_bias" || tensor.find("pre_layrnorm") != std::string::npos;
      if (optional || (std::string_view(name) == "bert_relative_key_query" && tensor.find("position_embeddings") != std::string::npos) || tensor.starts_with("pooler")) continue;
      folder.write_weights(tensor);
      const Status status = open(folder);
      EXPECT_FALSE(status.ok()) << name << " without " << tensor;
    }
  }
}

TEST(EncoderFolderTest, HeadsThatAreMissingAreNamed) {
  const PackedFolder words("bert_mlm"), labels("bert_cls"), roberta("roberta_cls"), distilbert("distilbert"), image("deit");
  words.write_weights("cls.predictions.transform.dense.weight");
  expect_refused(open(words), {"cls.predictions.transform.dense.weight", "BertForMaskedLM"});
  labels.write_weights("classifier.weight");
  expect_refused(open(labels), {"classifier.weight", "BertForSequenceClassification"});
  roberta.write_weights("classifier.out_proj.weight");
  expect_refused(open(roberta), {"classifier.out_proj.weight", "RobertaForSequenceClassification"});
  distilbert.write_weights("pre_classifier.weight");
  expect_refused(open(distilbert), {"pre_classifier.weight", "DistilBertForSequenceClassification"});
  image.write_weights("classifier.weight");
  expect_refused(open(image), {"classifier.weight", "DeiTForImageClassification"});
}

TEST(EncoderFolderTest, WhatLiesBesideTheWeightsIsChecked) {
  const PackedFolder folder("deit");
  folder.write_file("preprocessor_config.json", R"({"image_std": [0, 1, 1]})");
  expect_refused(open(folder), {"image_deviation.0"});
  folder.write_file("preprocessor_config.json", R"({"image_mean": [0.5, 0.5]})");
  expect_refused(open(folder), {"preprocessor_config.json", "image_mean", "2 numbers"});
  folder.write_file("preprocessor_config.json", R"({"image_mean": [0.5, 0.5, "a"]})");
  expect_refused(open(folder), {"preprocessor_config.json", "must be a number"});
  folder.write_file("preprocessor_config.json", "[");
  expect_refused(open(folder), {"preprocessor_config.json"});
  const PackedFolder pooled("roberta");
  std::filesystem::create_directories(pooled.path() + "/1_Pooling");
  pooled.write_file("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})");
  expect_refused(open(pooled), {"1_Pooling/config.json", "pooling_mode_max_tokens", "not there yet"});
  pooled.write_file("1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  EXPECT_TRUE(open(pooled).ok());
}

// A file whose header has some wrong bytes is refused, or is another network, whose steps can be built: nothing breaks.
TEST(EncoderFolderTest, DamagedHeadersBreakNothing) {
  std::uint32_t state = 7;
  const auto random = [&](std::size_t n) {
    state = state * 1664525u + 1013904223u;
    return static_cast<std::size_t>(state >> 8) % n;
  };
  std::size_t n_opened = 0;
  for (const char* name : {"bert_cls", "bert_relative_key_query", "nomic_bert", "t5_encoder", "deit", "clip_eos", "m2m100", "t5_gated"}) {
    const PackedFolder folder(name);
    const ByteSource source = open_model(folder.path()).value();
    std::vector<std::byte> whole(static_cast<std::size_t>(source.size_bytes));
    ASSERT_TRUE(source.read(0, whole).ok());
    for (int turn = 0; turn < 150; ++turn) {
      std::vector<std::byte> bytes = whole;
      for (std::size_t i = 0; i < 1 + random(3); ++i) bytes[24 + random(std::min<std::size_t>(bytes.size() - 24, turn % 2 == 0 ? 900 : 6000))] = static_cast<std::byte>(turn % 3 == 0 ? random(256) : random(5));
      const auto checkpoint = open_checkpoint(memory_source(bytes, "damaged"));
      if (!checkpoint.ok()) {
        EXPECT_EQ(checkpoint.status().message().find('\n'), std::string::npos) << checkpoint.status().message();
        continue;
      }
      ++n_opened;
      const Network& network = (*checkpoint)->network;
      StepPlaces places;
      places.n_ctx = places.n_source = 8;
      for (const CacheSpec& spec : network.caches) places.caches.push_back({cache_positions(spec, 8, 8), {}, {}});
      for (const RoleSpec& spec : network.roles) {
        const graph::Graph step = network.build(spec.role, spec.role == Role::kDecode ? 1 : takes_images(spec.role) ? network.facts.image_rows : 4, places);
        EXPECT_EQ(step.status().message().find('\n'), std::string::npos);
      }
    }
  }
  EXPECT_GT(n_opened, 50u);
}

}  // namespace
}  // namespace rondo::models::encoder_folder_test
