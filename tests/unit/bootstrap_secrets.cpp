// SPDX-License-Identifier: MIT
// Keys: what both ends come to, what somebody between them sees, and what stays behind in memory.
#include <cinttypes>

#include "bootstrap/pair_seals.hpp"
#include "bootstrap/world_keys.hpp"
#include "bootstrap_rig.hpp"
#include "thread_channel.hpp"

using namespace rig;
using namespace xio::bootstrap;
using xio::ephemeral_key;

namespace {

ephemeral_key::half bytes_of(const char* hex) {
  ephemeral_key::half out{};
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<unsigned char>(std::stoi(std::string(hex + 2 * i, 2), nullptr, 16));
  return out;
}

std::string text_of(const void* bytes, std::size_t count) { return {static_cast<const char*>(bytes), count}; }
std::string text_of(const secret& s) { return text_of(s.data(), secret::k_bytes); }
bool has(const std::string& all, const std::string& part) { return all.find(part) != std::string::npos; }

// RFC 7748 section 6.1.
TEST(ephemeral_key, agrees_as_rfc_7748_says) {
  xio::crypto::start();
  const ephemeral_key alice(bytes_of("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"));
  const ephemeral_key bob(bytes_of("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
  const auto a = bytes_of("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
  const auto b = bytes_of("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
  const auto k = bytes_of("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
  ephemeral_key::half one, other;
  ASSERT_TRUE(alice.agree(b.data(), one));
  ASSERT_TRUE(bob.agree(a.data(), other));
  EXPECT_PAIRS((alice.public_half(), a), (bob.public_half(), b), (one, k), (other, k));
}

// With these any two ends would agree on the same, known bytes (RFC 7748 section 6.1: check for the all-zero value).
TEST(ephemeral_key, refuses_points_of_low_order) {
  xio::crypto::start();
  const ephemeral_key mine;
  ephemeral_key::half both;
  for (const char* point : {"0000000000000000000000000000000000000000000000000000000000000000",
                            "0100000000000000000000000000000000000000000000000000000000000000",
                            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"})
    EXPECT_FALSE(mine.agree(bytes_of(point).data(), both)) << point;
}

// RFC 4231, test case 2, of which 32 bytes are kept. The AEAD's vector is of Python's cryptography: key 00 01 02 ..,
// number 7, head "head", text "text".
TEST(crypto, has_the_bytes_of_other_implementations) {
  xio::crypto::start();
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  ephemeral_key::half jefe{'J', 'e', 'f', 'e'}, out;
  xio::crypto::hmac(jefe, bytes("what do ya want for nothing?"), out);
  EXPECT_EQ(out, bytes_of("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"));
  ephemeral_key::half key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i);
  std::byte sealed[4], plain[4];
  std::array<unsigned char, xio::crypto::k_tag_bytes> tag;
  xio::crypto::seal(key, 7, bytes("head"), bytes("text"), sealed, tag);
  EXPECT_EQ(text_of(sealed, 4) + text_of(tag.data(), 16),
            text_of(bytes_of("e81df4f571d225f0c7f4fcecf1aa7af72fa5a841000000000000000000000000").data(), 20));
  EXPECT_TRUE(xio::crypto::unseal(key, 7, bytes("head"), sealed, plain, tag));
  EXPECT_EQ(text_of(plain, 4), "text");
  EXPECT_FALSE(xio::crypto::unseal(key, 8, bytes("head"), sealed, plain, tag));
  EXPECT_FALSE(xio::crypto::unseal(key, 7, bytes("heaD"), sealed, plain, tag));
}

// ---- keys from texts -----------------------------------------------------------------------------------------------

// Empty, or why this library stretches no passphrase: OpenSSL does from 3.2 on.
std::string why_no_passphrase() {
  const auto o = outcome_of([] { key_of("a passphrase that is for nothing"); });
  return o.status == XIO_ERR_UNSUPPORTED ? o.sentence : "";
}

TEST(key_text, of_64_hex_digits_is_a_key_and_any_other_a_passphrase) {
  if (const auto why = why_no_passphrase(); !why.empty()) GTEST_SKIP() << why;
  const std::string hex = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  std::string upper = hex;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  EXPECT_EQ(text_of(key_of(hex)), text_of(key_of(upper)));
  EXPECT_NE(text_of(key_of(hex)), text_of(key_of(hex.substr(1))));
  EXPECT_NE(text_of(key_of(hex)), text_of(key_of("g" + hex.substr(1))));
}

// The passphrase goes through Argon2id (RFC 9106), so that every guess costs what is written in base/crypto.hpp:
// expected from the tool argon2 and Python's hmac.
TEST(key_text, that_is_a_passphrase_is_stretched) {
  if (const auto why = why_no_passphrase(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(text_of(key_of("an honest key of the tests")),
            text_of(bytes_of("a8cfc03f982b76dab49490f21495e6e2be55c5a750e983d34182cdd9e8f1f2e6").data(), 32));
}

// How often the text, which is given with every byte ^ 0x55, stands in what this process can write.
int copies_in_memory(const std::string& text) {
  // Memory that was freed has the allocator's own words in its first 16 bytes; the search must not take it into use.
  const std::string_view hidden = std::string_view(text).substr(16);
  int copies = 0;
  const xio::unique_fd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  // Shared, so that it is no part of the private memory that is read.
  constexpr std::size_t k_chunk = 1 << 20;
  void* room = mmap(nullptr, k_chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const std::span<unsigned char> chunk(static_cast<unsigned char*>(room), k_chunk);
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    std::uint64_t begin = 0, end = 0;
    char rights[8] = "";
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, rights) != 3) continue;
    if (std::strcmp(rights, "rw-p") != 0 || end - begin > (std::uint64_t{1} << 28)) continue;
    for (std::uint64_t at = begin; at < end; at += chunk.size() - hidden.size()) {
      const ssize_t n =
          pread(memory.get(), chunk.data(), std::min<std::uint64_t>(chunk.size(), end - at), static_cast<off_t>(at));
      if (n <= 0) break;
      const auto same = [](unsigned char there, char wanted) {
        return (there ^ 0x55) == static_cast<unsigned char>(wanted);
      };
      auto from = chunk.begin();
      while ((from = std::search(from, chunk.begin() + n, hidden.begin(), hidden.end(), same)) != chunk.begin() + n)
        ++copies, ++from;
      explicit_bzero(chunk.data(), chunk.size());
    }
  }
  std::fclose(maps);
  munmap(room, k_chunk);
  return copies;
}

std::string hidden_text() {
  std::string hidden;
  for (int i = 0; i < 40; ++i) hidden += static_cast<char>(('a' + (i * 7) % 26) ^ 0x55);
  return hidden;
}

TEST(key_text, does_not_stay_behind_in_memory) {
  if (const auto why = why_no_passphrase(); !why.empty()) GTEST_SKIP() << why;
  const std::string hidden = hidden_text();
  char path[] = "/tmp/xio-key-XXXXXX";
  close(mkstemp(path));
  in_child([&] {
    const int fd = open(path, O_WRONLY);
    for (char c : hidden) {
      c ^= 0x55;
      (void)!write(fd, &c, 1);
    }
    return 0;
  });
  {
    auto o = tcp_options(free_port(), 0, 1);
    o.tcp_key = std::string_view();
    o.tcp_key_file = path;
    const auto world = connect_tcp(o);
    EXPECT_EQ(copies_in_memory(hidden), 0) << "from the file";
  }
  {
    std::vector<char> text;
    for (const char c : hidden) text.push_back(static_cast<char>(c ^ 0x55));
    auto o = tcp_options(free_port(), 0, 1);
    o.tcp_key = std::string_view(text.data(), text.size());
    explicit_bzero(text.data(), text.size());
    EXPECT_GE(copies_in_memory(hidden), 1) << "this test finds nothing";
    const auto world = connect_tcp(o);
    const xio::options copy = o;
    o.tcp_key = xio::secret_text();
    EXPECT_EQ(copies_in_memory(hidden), 1) << "the copy's";
    const_cast<xio::options&>(copy).tcp_key = xio::secret_text();
    EXPECT_EQ(copies_in_memory(hidden), 0) << "from the options";
  }
  unlink(path);
}

// ---- key files -----------------------------------------------------------------------------------------------------

struct key_file : testing::Test {
  void SetUp() override {
    char name[] = "/tmp/xio-key-XXXXXX";
    const int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    path_ = name;
    const std::string line = k_key + "\n";
    ASSERT_EQ(write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    close(fd);
  }
  void TearDown() override { unlink(path_.c_str()); }
  xio::options options_with(const std::string& path) const {
    auto o = xio::options::defaults();
    o.tcp_key_file = path;
    return o;
  }
  std::string path_;
};

TEST_F(key_file, of_mode_0600_or_0400_gives_the_same_key_as_its_text) {
  const auto plain = key_of(k_key);
  for (const mode_t mode : {0600, 0400}) {
    chmod(path_.c_str(), mode);
    const auto read = load_key(options_with(path_));
    EXPECT_EQ(std::memcmp(read.data(), plain.data(), secret::k_bytes), 0);
  }
}

TEST_F(key_file, that_others_can_reach_is_refused) {
  for (const mode_t mode : {0640, 0604, 0660, 0602, 0644, 0666, 0700, 0620}) {
    chmod(path_.c_str(), mode);
    SCOPED_TRACE(mode);
    expect_outcome(outcome_of([&] { load_key(options_with(path_)); }), XIO_ERR_AUTH, {"has mode 0", path_});
  }
}

TEST_F(key_file, of_another_user_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  expect_outcome(outcome_of([&] { load_key(options_with(path_)); }), XIO_ERR_AUTH, {"belongs to user 12345"});
}

TEST_F(key_file, that_is_none_is_refused) {
  EXPECT_EQ(outcome_of([&] { load_key(options_with("/nonexistent/key")); }).status, XIO_ERR_CONFIG);
  EXPECT_EQ(outcome_of([&] { load_key(options_with("/tmp")); }).status, XIO_ERR_AUTH);
  const auto fifo = path_ + ".fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(outcome_of([&] { load_key(options_with(fifo)); }).status, XIO_ERR_AUTH);  // and does not wait for a writer
  unlink(fifo.c_str());
}

TEST_F(key_file, with_a_short_or_huge_content_is_refused) {
  for (const off_t bytes : {15, 0, 5000}) {
    ASSERT_EQ(truncate(path_.c_str(), bytes), 0);
    EXPECT_EQ(outcome_of([&] { load_key(options_with(path_)); }).status, XIO_ERR_CONFIG) << bytes;
  }
}

TEST_F(key_file, forms_a_world) {
  const int port = free_port();
  const auto all = in_threads(2, [&](int rank) {
    auto o = tcp_options(port, rank, 2);
    if (rank == 1) o.tcp_key = "", o.tcp_key_file = path_;
    check_allgather(*connect_tcp(o), 10, 1);
  });
  expect_all_ok(all);
}

// ---- what a listener hears -----------------------------------------------------------------------------------------

// Stands between rank 1 and rank 0 and writes down what each says.
class eavesdropper {
 public:
  explicit eavesdropper(int to) : port_(free_port()), to_(to) {
    listeners_ = listen_on(port_);
    thread_ = std::thread([this] { run(); });
  }
  ~eavesdropper() { finish(); }
  int port() const { return port_; }
  void finish() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::string from_peer, from_root;

 private:
  void run() {
    const auto peer = accept_from(listeners_);
    raw_connection root(to_);
    const int root_fd = root.release();
    const xio::unique_fd owner(root_fd);
    bool open = true;
    while (open && !done_) {
      pollfd two[] = {{peer.get(), POLLIN, 0}, {root_fd, POLLIN, 0}};
      poll(two, 2, 20);
      if (two[0].revents != 0) open = pass(peer.get(), root_fd, from_peer) && open;
      if (two[1].revents != 0) open = pass(root_fd, peer.get(), from_root) && open;
    }
  }
  static bool pass(int from, int to, std::string& log) {
    char bytes[65536];
    const ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n <= 0) return n < 0 && errno == EAGAIN;
    log.append(bytes, static_cast<std::size_t>(n));
    for (ssize_t sent = 0; sent < n;) {
      const ssize_t more = send(to, bytes + sent, static_cast<std::size_t>(n - sent), MSG_NOSIGNAL);
      if (more > 0)
        sent += more;
      else if (errno != EAGAIN)
        return false;
    }
    return true;
  }

  const int port_, to_;
  std::vector<xio::unique_fd> listeners_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

TEST(eavesdropping, on_the_tcp_bootstrap_yields_neither_keys_nor_data) {
  const int port = free_port();
  eavesdropper between(port);
  const std::string data = "what rank 1 has to say to rank 0";
  std::string session;
  std::mutex lock;
  const auto all = in_threads(2, [&](int rank) {
    const auto c = connect_tcp(tcp_options(rank == 0 ? port : between.port(), rank, 2));
    c->allgather(std::as_bytes(std::span(data)));
    const auto pair = text_of(c->keys()->with(1 - rank, "the test"));
    const std::lock_guard hold(lock);
    if (session.empty()) session = pair;
    EXPECT_EQ(session, pair);
  });
  between.finish();
  expect_all_ok(all);
  for (const std::string* heard : {&between.from_peer, &between.from_root}) {
    EXPECT_GT(heard->size(), data.size());
    for (const auto& secret_one : {k_key, text_of(key_of(k_key)), session, data}) EXPECT_FALSE(has(*heard, secret_one));
  }
}

// A recorded login of a rank lets nobody in later, though the key is the same.
TEST(eavesdropping, on_a_world_gives_nothing_to_replay) {
  const int port = free_port();
  eavesdropper between(port);
  in_threads(2, [&](int rank) { connect_tcp(tcp_options(rank == 0 ? port : between.port(), rank, 2))->barrier(); });
  between.finish();
  ASSERT_GT(between.from_peer.size(), k_hello_bytes);
  const int next = free_port();
  const auto all = in_threads(3, [&](int i) {
    if (i == 2) {
      raw_connection c(next);
      c.send_bytes(between.from_peer.data(), between.from_peer.size());
      EXPECT_LE(c.receive(k_banner_bytes + k_reply_bytes + 1).size(), k_banner_bytes + k_reply_bytes);
      return;
    }
    if (i == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    connect_tcp(tcp_options(next, i, 2))->barrier();
  });
  expect_all_ok(all);
}

// A channel as mpi's, which seals nothing, and all that it carries.
class open_channel final : public channel {
 public:
  open_channel(std::unique_ptr<channel> inner, std::string& heard, std::mutex& lock)
      : inner_(std::move(inner)), heard_(heard), lock_(lock) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const char* name() const override { return "open"; }
  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    {
      const std::lock_guard hold(lock_);
      heard_ += text_of(mine.data(), mine.size());
    }
    return inner_->allgather(mine);
  }
  cells all_to_all(const cells& mine) override { return inner_->all_to_all(mine); }

 private:
  std::unique_ptr<channel> inner_;
  std::string& heard_;
  std::mutex& lock_;
};

struct key_run {
  std::string heard;
  std::vector<std::vector<std::string>> keys;  // [rank][other]
  std::vector<outcome> outcomes;
  bool proven = false;
};

// Every rank's keys with every other, over an open channel; rank r has been given texts[r].
key_run agree(const std::vector<std::string>& texts) {
  key_run run;
  run.keys.resize(texts.size());
  run.outcomes.resize(texts.size());
  std::mutex lock;
  xio::test::run_pes(static_cast<int>(texts.size()), [&](int rank, std::unique_ptr<channel> inner) {
    open_channel c(std::move(inner), run.heard, lock);
    const auto at = static_cast<std::size_t>(rank);
    auto o = xio::options::defaults();
    o.tcp_key = texts[at];
    c.hold(configured_key::from(o));
    run.outcomes[at] = outcome_of([&] {
      const auto keys = c.keys();
      for (int other = 0; other < c.size(); ++other)
        run.keys[at].push_back(other == rank ? "" : text_of(keys->with(other, "one purpose")));
      EXPECT_EQ(c.keys(), keys) << "agreed on once";
      for (int other = 0; other < c.size(); ++other) {
        if (other == rank) continue;
        EXPECT_NE(text_of(keys->with(other, "another")), run.keys[at][static_cast<std::size_t>(other)]);
      }
      run.proven = keys->proven();
    });
  });
  return run;
}

TEST(world_keys, are_known_to_two_ranks_and_to_no_listener) {
  for (const std::string& key : {std::string(), k_key}) {
    const auto run = agree({key, key, key});
    EXPECT_EQ(run.proven, !key.empty());
    std::vector<std::string> all;
    for (std::size_t a = 0; a < 3; ++a) {
      ASSERT_EQ(run.outcomes[a].status, XIO_OK) << run.outcomes[a].sentence;
      for (std::size_t b = a + 1; b < 3; ++b) {
        EXPECT_EQ(run.keys[a][b], run.keys[b][a]);
        EXPECT_EQ(std::count(all.begin(), all.end(), run.keys[a][b]), 0) << "another pair's";
        all.push_back(run.keys[a][b]);
      }
    }
    EXPECT_GE(run.heard.size(), 3 * 32u);
    for (const auto& one : all) EXPECT_FALSE(has(run.heard, one));
    if (key.empty()) continue;
    EXPECT_FALSE(has(run.heard, key));
    EXPECT_FALSE(has(run.heard, text_of(key_of(key))));
  }
}

TEST(world_keys, differ_from_world_to_world) {
  EXPECT_NE(agree({k_key, k_key}).keys[0][1], agree({k_key, k_key}).keys[0][1]);
}

TEST(world_keys, are_refused_on_every_rank_where_one_has_another_key_or_none) {
  for (const auto& o : agree({k_key, k_key, k_other_key}).outcomes)
    expect_outcome(o, XIO_ERR_AUTH, {"holds another key"});
  for (const auto& o : agree({k_key, "", k_key}).outcomes)
    expect_outcome(o, XIO_ERR_CONFIG, {"rank 0 has XIO_TCP_KEY or XIO_TCP_KEY_FILE and rank 1 has not"});
  const auto wrong = agree({k_key, "too short"}).outcomes;
  expect_outcome(wrong[0], XIO_ERR_PEER, {"rank 1 cannot use its XIO_TCP_KEY"});
  expect_outcome(wrong[1], XIO_ERR_CONFIG, {"has 9 characters"});
}

// ---- seals of pairs ------------------------------------------------------------------------------------------------

TEST(pair_seals, open_what_that_rank_sealed_for_this_one_and_nothing_else) {
  std::vector<std::unique_ptr<pair_seals>> seals(3);
  xio::test::run_pes(3, [&](int rank, std::unique_ptr<channel> c) {
    seals[static_cast<std::size_t>(rank)] = std::make_unique<pair_seals>(*c);
  });
  const std::string words = "sealed for rank 1";
  const auto sealed = seals[0]->seal(1, 7, std::as_bytes(std::span(words)));
  ASSERT_EQ(sealed.size(), words.size() + pair_seals::k_bytes);
  EXPECT_FALSE(has(text_of(sealed.data(), sealed.size()), "sealed"));
  std::vector<std::byte> plain(words.size());
  ASSERT_TRUE(seals[1]->unseal(0, 7, sealed, plain.data()));
  EXPECT_EQ(text_of(plain.data(), plain.size()), words);
  EXPECT_FALSE(seals[1]->unseal(0, 8, sealed, plain.data())) << "as the next message";
  EXPECT_FALSE(seals[1]->unseal(2, 7, sealed, plain.data())) << "as another rank's";
  EXPECT_FALSE(seals[2]->unseal(0, 7, sealed, plain.data())) << "by another rank";
  EXPECT_FALSE(seals[0]->unseal(1, 7, sealed, plain.data())) << "sent back";
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    auto altered = sealed;
    altered[i] ^= std::byte{1};
    EXPECT_FALSE(seals[1]->unseal(0, 7, altered, plain.data())) << "byte " << i;
  }
  EXPECT_PAIRS((seals[0]->tag_to(1, 7), seals[1]->tag_from(0, 7)), (seals[1]->tag_to(0, 7), seals[0]->tag_from(1, 7)));
  for (const std::uint64_t other : {seals[0]->tag_to(1, 8), seals[0]->tag_to(2, 7), seals[1]->tag_to(0, 7)})
    EXPECT_NE(seals[0]->tag_to(1, 7), other);
}

}  // namespace
