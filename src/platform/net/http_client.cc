// SPDX-License-Identifier: Apache-2.0
#include "platform/net/http_client.h"

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/x509_vfy.h>

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

/// The part of a URL between "://" and the path.
std::string_view Authority(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  url.remove_prefix(scheme + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

std::string_view Host(std::string_view url) {
  std::string_view host = Authority(url);
  host.remove_prefix(host.rfind('@') + 1);  // npos + 1 is 0
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// What an operator can do about a failure of TLS.
std::string_view Advice(CURLcode rc, long verify_result) {
  if (rc == CURLE_SSL_CONNECT_ERROR)
    return "; does this port speak TLS (1.2 or later), and is the URL's https:// right?";
  if (rc != CURLE_PEER_FAILED_VERIFICATION) return "";
  switch (verify_result) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "; for a private authority give its certificate by ca-file, EXPANSE_CA_FILE or "
             "SSL_CERT_FILE";
    default:
      return "";
  }
}

class CurlHttpClient final : public HttpClient {
 public:
  explicit CurlHttpClient(HttpClientOptions options) : options_(std::move(options)) {
    if (!options_.connect_to.empty()) {
      const bool is_v6 = options_.connect_to.find(':') != std::string::npos;
      const std::string entry = is_v6 ? fmt::format("::[{}]:", options_.connect_to)
                                      : fmt::format("::{}:", options_.connect_to);
      connect_to_ = curl_slist_append(nullptr, entry.c_str());
    }
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  }
  ~CurlHttpClient() override {
    for (CURL* handle : idle_) curl_easy_cleanup(handle);
    curl_slist_free_all(connect_to_);
  }
  CurlHttpClient(const CurlHttpClient&) = delete;
  CurlHttpClient& operator=(const CurlHttpClient&) = delete;

  Result<HttpResponse> Do(const HttpCall& call) override {
    CURL* handle = Take();
    if (handle == nullptr) return Error(Code::kUnavailable, "HTTP client: out of memory");
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

  void SetConnection(CURL* handle, const HttpCall& call) const {
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(call.connect_timeout.count()));
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    // curl would keep the authorities of the first connection for a day.
    curl_easy_setopt(handle, CURLOPT_CA_CACHE_TIMEOUT, 0L);
    const char* from_environment = std::getenv("SSL_CERT_FILE");
    if (!options_.ca_file.empty())
      curl_easy_setopt(handle, CURLOPT_CAINFO, options_.ca_file.c_str());
    else if (from_environment != nullptr && *from_environment != '\0')
      curl_easy_setopt(handle, CURLOPT_CAINFO, from_environment);
    if (connect_to_ != nullptr) curl_easy_setopt(handle, CURLOPT_CONNECT_TO, connect_to_);
    if (connect_to_ != nullptr || IsLoopback(Host(call.url)))
      curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
  }

  Error Failure(CURL* handle, CURLcode rc, const HttpCall& call, const char* text) const {
    long verify_result = 0;
    curl_easy_getinfo(handle, CURLINFO_SSL_VERIFYRESULT, &verify_result);
    const std::string what = text[0] != '\0' ? text : curl_easy_strerror(rc);
    // Never kInvalidArgument: that is a server's word on what was sent, and nothing was.
    const bool is_setup = rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL ||
                          rc == CURLE_SSL_CACERT_BADFILE;
    const Code code = rc == CURLE_OPERATION_TIMEDOUT ? Code::kDeadlineExceeded
                      : is_setup                     ? Code::kFailedPrecondition
                                                     : Code::kUnavailable;
    return Error(
        code, fmt::format("{}: {}{}", WithoutUserInfo(call.url), what, Advice(rc, verify_result)));
  }

  Result<HttpResponse> Perform(CURL* handle, const HttpCall& call) const {
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
    SetConnection(handle, call);
    const CURLcode rc = curl_easy_perform(handle);
    curl_slist_free_all(headers);
    if (rc == CURLE_OK) {
      long status = 0;
      curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
      receiver.response.status = static_cast<int>(status);
      return std::move(receiver.response);
    }
    if (receiver.too_large)
      return Error(Code::kResourceExhausted,
                   fmt::format("{}: answer larger than {} bytes", WithoutUserInfo(call.url),
                               call.max_response_bytes));
    return Failure(handle, rc, call, error_text);
  }

  const HttpClientOptions options_;
  curl_slist* connect_to_ = nullptr;
  std::mutex mutex_;
  std::vector<CURL*> idle_;
};

}  // namespace

std::unique_ptr<HttpClient> NewCurlHttpClient(HttpClientOptions options) {
  return std::make_unique<CurlHttpClient>(std::move(options));
}

bool IsInTheClear(std::string_view url) {
  return StartsWithIgnoreCase(url, "http://") && !IsLoopback(Host(url));
}

std::string WithoutUserInfo(std::string_view url) {
  const std::string_view authority = Authority(url);
  const size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  const size_t begin = static_cast<size_t>(authority.data() - url.data());
  return std::string(url.substr(0, begin)) + std::string(url.substr(begin + at + 1));
}

}  // namespace expanse::platform
