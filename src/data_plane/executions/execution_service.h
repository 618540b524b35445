// SPDX-License-Identifier: Apache-2.0
// Executions as people and the intelligence plane read them.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "data_plane/identity/fragments.h"
#include "expanse/data/v1/data.rpc.h"
#include "storage/blob/blob_store.h"
#include "storage/relational/database.h"

namespace expanse::data_plane {

class ExecutionService final : public data::v1::ExecutionService {
 public:
  /// Everything outlives the service. console_url: for links; empty: none.
  ExecutionService(storage::Database& database, storage::BlobStore& blobs,
                   std::string console_url = "")
      : database_(database), blobs_(blobs), console_url_(std::move(console_url)) {}

  Result<data::v1::ListExecutionsResponse> ListExecutions(
      const rpc::CallContext& context, const data::v1::ListExecutionsRequest& request) override;
  Result<data::v1::GetExecutionResponse> GetExecution(
      const rpc::CallContext& context, const data::v1::GetExecutionRequest& request) override;
  Result<data::v1::ResolveExecutionResponse> ResolveExecution(
      const rpc::CallContext& context, const data::v1::ResolveExecutionRequest& request) override;
  Result<data::v1::ListRunsOfSourceResponse> ListRunsOfSource(
      const rpc::CallContext& context, const data::v1::ListRunsOfSourceRequest& request) override;
  Result<data::v1::GetLogTailsResponse> GetLogTails(
      const rpc::CallContext& context, const data::v1::GetLogTailsRequest& request) override;
  Result<data::v1::GetBundleResponse> GetBundle(const rpc::CallContext& context,
                                                const data::v1::GetBundleRequest& request) override;
  Result<data::v1::GetComputeFactsResponse> GetComputeFacts(
      const rpc::CallContext& context, const data::v1::GetComputeFactsRequest& request) override;
  Result<data::v1::SetUserMappingResponse> SetUserMapping(
      const rpc::CallContext& context, const data::v1::SetUserMappingRequest& request) override;

 private:
  void Link(common::v1::Execution* execution) const;

  storage::Database& database_;
  storage::BlobStore& blobs_;
  std::string console_url_;
};

/// The execution, or the one it was joined to since; kNotFound when the caller may not see it.
Result<common::v1::Execution> FindExecution(storage::Transaction& transaction,
                                            const rpc::Caller& caller,
                                            const std::string& execution_id);

}  // namespace expanse::data_plane
