// SPDX-License-Identifier: Apache-2.0
#include "platform/net/tls.h"

#include <ctime>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/log.h"
#include "base/time.h"
#include "platform/fs/fs.h"

namespace expanse::platform {
namespace {

constexpr mode_t kOthers = 0007;

/// What OpenSSL says of the last failure; its queue is empty afterwards.
std::string OpenSslReason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

Error Failed(Code code, const std::string& what, const std::string& file) {
  return Error(code, fmt::format("{} {}: {}", what, file, OpenSslReason()));
}

int64_t SecondsOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return static_cast<int64_t>(::timegm(&parts));
}

int64_t NowSeconds() { return static_cast<int64_t>(std::time(nullptr)); }

std::string TimeText(int64_t seconds) { return FormatRfc3339(FromUnixMillis(seconds * 1000)); }

/// A key that asks for a pass phrase must fail rather than wait at a terminal.
int NoPassPhrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return 0; }

std::string SignatureOf(const std::string& path) {
  const auto info = Fs().Stat(path);
  if (!info.ok()) return "absent";
  return fmt::format("{}/{}/{}", info->inode, info->size, info->mtime_ms);
}

}  // namespace

Result<TlsIdentity::Loaded> TlsIdentity::Read() const {
  for (const auto* file : {&certificate_file_, &key_file_}) {
    EXPANSE_TRY(const auto info, Fs().Stat(*file));
    if (!info.is_regular) return Error(Code::kInvalidArgument, *file + " is no regular file");
    if (file == &key_file_ && (info.mode & kOthers) != 0)
      return Error(Code::kFailedPrecondition,
                   *file + " is a private key that every account may read; chmod 0640 it or less");
  }
  ERR_clear_error();
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return Error(Code::kResourceExhausted, "TLS: " + OpenSslReason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_default_passwd_cb(context.get(), NoPassPhrase);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_file_.c_str()) != 1)
    return Failed(Code::kInvalidArgument, "reading certificate", certificate_file_);
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file_.c_str(), SSL_FILETYPE_PEM) != 1) {
    // OpenSSL compares as it loads: a mismatch is told here, not by check_private_key below.
    const bool mismatch = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
                          ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH;
    if (!mismatch) return Failed(Code::kInvalidArgument, "reading key", key_file_);
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    ERR_clear_error();
    return Error(Code::kFailedPrecondition,
                 key_file_ + " is not the key of the certificate in " + certificate_file_);
  }
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  return Loaded{context, SecondsOf(X509_get0_notAfter(certificate))};
}

std::string TlsIdentity::Signature() const {
  return SignatureOf(certificate_file_) + " " + SignatureOf(key_file_);
}

Result<std::unique_ptr<TlsIdentity>> TlsIdentity::Load(std::string certificate_file,
                                                       std::string key_file) {
  std::unique_ptr<TlsIdentity> self(
      new TlsIdentity(std::move(certificate_file), std::move(key_file)));
  self->signature_ = self->Signature();  // before reading: what comes later is a change
  EXPANSE_TRY(self->loaded_, self->Read());
  if (self->loaded_.not_after_s <= NowSeconds())
    log::Warning("tls.certificate_expired", {{"certificate", self->certificate_file_},
                                             {"since", TimeText(self->loaded_.not_after_s)}});
  return self;
}

std::shared_ptr<ssl_ctx_st> TlsIdentity::context() const {
  const std::lock_guard lock(mutex_);
  return loaded_.context;
}

Status TlsIdentity::ReloadLocked() {
  signature_ = Signature();
  auto read = Read();
  if (read.ok() && read->not_after_s <= NowSeconds())
    read = Error(Code::kFailedPrecondition,
                 fmt::format("{} expired {}", certificate_file_, TimeText(read->not_after_s)));
  const std::lock_guard lock(mutex_);
  if (!read.ok()) {
    ++failed_reloads_;
    if (last_failure_ != read.error().message())
      log::Error("tls.reload_failed", {{"reason", read.error().message()},
                                       {"so", "the old certificate stays in use"},
                                       {"until", TimeText(loaded_.not_after_s)}});
    last_failure_ = read.error().message();
    return read.error();
  }
  loaded_ = std::move(read).value();
  ++reloads_;
  last_failure_.clear();
  log::Info("tls.reloaded",
            {{"certificate", certificate_file_}, {"until", TimeText(loaded_.not_after_s)}});
  return {};
}

Status TlsIdentity::Reload() {
  const std::lock_guard lock(reload_mutex_);
  return ReloadLocked();
}

void TlsIdentity::ReloadIfChanged() {
  const std::lock_guard lock(reload_mutex_);
  if (last_failure_.empty() && Signature() == signature_) return;
  (void)ReloadLocked().ok();  // logged there
}

int64_t TlsIdentity::not_after_s() const {
  const std::lock_guard lock(mutex_);
  return loaded_.not_after_s;
}
uint64_t TlsIdentity::reloads() const {
  const std::lock_guard lock(mutex_);
  return reloads_;
}
uint64_t TlsIdentity::failed_reloads() const {
  const std::lock_guard lock(mutex_);
  return failed_reloads_;
}

}  // namespace expanse::platform
