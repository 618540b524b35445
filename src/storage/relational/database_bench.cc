// SPDX-License-Identifier: Apache-2.0
// What the relational layer costs on SQLite; figures in docs/adr/0003-one-sql-dialect.md.
#include <cstdio>
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "platform/fs/fs.h"
#include "storage/relational/database.h"

namespace expanse::storage {
namespace {

class Store {
 public:
  Store() : database_(Database::Open("sqlite:" + directory_.path() + "/t.db").value()) {
    Check(
        database_->Execute("CREATE TABLE t (org TEXT NOT NULL, id BIGINT NOT NULL, name TEXT, "
                           "PRIMARY KEY (org, id))"));
  }
  Database& operator*() { return *database_; }
  template <typename T>
  static void Check(const Result<T>& result) {
    if (result.ok()) return;
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::abort();
  }
  Status Insert(int64_t first, int64_t count) {
    return database_->Write([&](Transaction& transaction) -> Status {
      for (int64_t i = first; i < first + count; ++i)
        EXPANSE_CHECK_OK(transaction.Execute("INSERT INTO t (org, id, name) VALUES ($1, $2, $3)",
                                             {"org", i, "a name of some length"}));
      return {};
    });
  }

 private:
  platform::TempDir directory_;
  std::unique_ptr<Database> database_;
};

void Transactions(benchmark::State& state) {
  Store store;
  int64_t next = 0;
  for (auto _ : state) {
    Store::Check(store.Insert(next, state.range(0)));
    next += state.range(0);
  }
  state.SetItemsProcessed(next);
}
BENCHMARK(Transactions)->ArgName("rows")->Arg(1)->Arg(1000)->UseRealTime();

void PointQueries(benchmark::State& state) {
  Store store;
  Store::Check(store.Insert(0, 10'000));
  int64_t i = 0;
  for (auto _ : state) {
    const auto rows = (*store).Query("SELECT name FROM t WHERE org = $1 AND id = $2",
                                     {"org", i++ * 7919 % 10'000});
    Store::Check(rows);
    benchmark::DoNotOptimize(rows->size());
  }
  state.SetItemsProcessed(i);
}
BENCHMARK(PointQueries);

}  // namespace
}  // namespace expanse::storage

BENCHMARK_MAIN();
