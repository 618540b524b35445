// SPDX-License-Identifier: Apache-2.0
#include "platform/net/http_client.h"

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/strings.h"

namespace expanse::platform {
namespace {

struct Receiver {
  HttpResponse response;
  size_t limit = 0;
  bool too_large = false;
};

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* receiver = static_cast<Receiver*>(user);
  const size_t n = size * count;
  if (receiver->response.body.size() + n > receiver->limit) {
    receiver->too_large = true;
    return 0;
  }
  receiver->response.body.append(data, n);
  return n;
}

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* receiver = static_cast<Receiver*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) receiver->response.headers.clear();  // after 100 or a redirect
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos)
    receiver->response.headers[ToLower(Trim(line.substr(0, colon)))] =
        std::string(Trim(line.substr(colon + 1)));
  return size * count;
}

class CurlHttpClient final : public HttpClient {
 public:
  CurlHttpClient() {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  }
  ~CurlHttpClient() override {
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
  }

  Result<HttpResponse> Do(const HttpCall& call) override {
    CURL* handle = Take();
    if (handle == nullptr) return Error(Code::kResourceExhausted, "HTTP client: out of memory");
    auto result = Perform(handle, call);
    Put(handle);
    return result;
  }

 private:
  CURL* Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return curl_easy_init();
    CURL* handle = idle_.back();
    idle_.pop_back();
    return handle;
  }
  void Put(CURL* handle) {
    curl_easy_reset(handle);  // keeps connections and caches
    const std::lock_guard lock(mutex_);
    idle_.push_back(handle);
  }

  static Result<HttpResponse> Perform(CURL* handle, const HttpCall& call) {
    Receiver receiver;
    receiver.limit = call.max_response_bytes;
    curl_slist* headers = nullptr;
    for (const auto& [name, value] : call.headers)
      headers = curl_slist_append(headers, fmt::format("{}: {}", name, value).c_str());
    headers = curl_slist_append(headers, "Expect:");  // no 100-continue round trip
    char error_text[CURL_ERROR_SIZE] = "";
    curl_easy_setopt(handle, CURLOPT_URL, call.url.c_str());
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, call.method.c_str());
    if (call.method != "GET" && call.method != "HEAD") {
      curl_easy_setopt(handle, CURLOPT_POSTFIELDS, call.body.data());
      curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(call.body.size()));
    }
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, OnBody);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &receiver);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, &receiver);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error_text);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(call.connect_timeout.count()));
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    if (const char* ca = std::getenv("SSL_CERT_FILE"); ca != nullptr && *ca != '\0')
      curl_easy_setopt(handle, CURLOPT_CAINFO, ca);
    const CURLcode rc = curl_easy_perform(handle);
    curl_slist_free_all(headers);
    if (rc == CURLE_OK) {
      long status = 0;
      curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
      receiver.response.status = static_cast<int>(status);
      return std::move(receiver.response);
    }
    if (receiver.too_large)
      return Error(Code::kResourceExhausted, fmt::format("{}: answer larger than {} bytes",
                                                         call.url, call.max_response_bytes));
    const std::string what = error_text[0] != '\0' ? error_text : curl_easy_strerror(rc);
    const Code code = rc == CURLE_OPERATION_TIMEDOUT ? Code::kDeadlineExceeded
                      : rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL
                          ? Code::kInvalidArgument
                          : Code::kUnavailable;
    return Error(code, fmt::format("{}: {}", call.url, what));
  }

  std::mutex mutex_;
  std::vector<CURL*> idle_;
};

}  // namespace

std::unique_ptr<HttpClient> NewCurlHttpClient() { return std::make_unique<CurlHttpClient>(); }

}  // namespace expanse::platform
