// SPDX-License-Identifier: Apache-2.0
// Callers that mean harm or are broken: whatever arrives, the answer is a Connect error with a
// code that blames the caller, and the next good call works.
#include <atomic>
#include <limits>
#include <thread>

#include <google/protobuf/reflection.h>

#include "control_plane/plane_fixture.h"
#include "expanse/common/v1/options.pb.h"

namespace expanse::control_plane {
namespace {

namespace v1 = control::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

std::vector<const MethodDescriptor*> EveryMethod() {
  std::vector<const MethodDescriptor*> out;
  const auto* file = v1::Compute::descriptor()->file();
  for (int s = 0; s < file->service_count(); ++s)
    for (int m = 0; m < file->service(s)->method_count(); ++m)
      out.push_back(file->service(s)->method(m));
  return out;
}

std::string PathOf(const MethodDescriptor* method) {
  return "/" + method->service()->full_name() + "/" + method->name();
}

/// Every field of the request set to the text or the number.
std::unique_ptr<Message> Filled(const MethodDescriptor* method, const std::string& text,
                                int64_t number) {
  std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                       ->GetPrototype(method->input_type())
                                       ->New());
  const auto* reflection = request->GetReflection();
  for (int i = 0; i < method->input_type()->field_count(); ++i) {
    const FieldDescriptor* field = method->input_type()->field(i);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        if (field->is_repeated()) {
          reflection->AddString(request.get(), field, text);
        } else {
          reflection->SetString(request.get(), field, text);
        }
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection->SetInt32(request.get(), field, static_cast<int32_t>(number));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection->SetInt64(request.get(), field, number);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        reflection->SetEnumValue(request.get(), field, static_cast<int>(number));
        break;
      default:
        break;
    }
  }
  return request;
}

class Adversary : public PlaneFixture {
 protected:
  platform::HttpResponse Send(const std::string& path, const std::string& body,
                              platform::HttpHeaders headers, const std::string& method = "POST") {
    platform::HttpCall call;
    call.method = method;
    call.url = server_->url() + path;
    call.headers = std::move(headers);
    call.body = body;
    auto response = http_->Do(call);
    EXPECT_TRUE(response.ok()) << path << ": " << response.error().message();
    return response.ok() ? std::move(response).value() : platform::HttpResponse{};
  }
  /// The credential that the method asks for.
  std::string BearerFor(const MethodDescriptor* method) {
    const std::string permission = method->options().GetExtension(common::v1::permission);
    if (permission == "public") return "";
    return permission == "plane" ? PlaneBearer() : owner_;
  }
  void ExpectAlive() { EXPECT_TRUE(Auth().WhoAmI(owner_, {}).ok()); }
};

TEST_F(Adversary, MalformedBodiesAreTheCallersFaultOnEveryMethod) {
  const std::string deep(100'000, '[');
  const std::string bodies[] = {"{",
                                "[]",
                                "null",
                                "7",
                                "\"x\"",
                                "{\"a\":}",
                                deep,
                                "\xff\xfe{}",
                                std::string(3, '\0'),
                                "<xml/>",
                                "{\"limit\":\"9999999999999999999999\"}"};
  for (const auto* method : EveryMethod())
    for (const auto& body : bodies) {
      const auto response = Send(
          PathOf(method), body,
          {{"content-type", "application/json"}, {"authorization", "Bearer " + BearerFor(method)}});
      EXPECT_LT(response.status, 500) << PathOf(method) << " " << body.substr(0, 20);
      if (response.status != 200) {
        EXPECT_THAT(response.body, testing::HasSubstr("\"code\":"));
      }
      const auto binary = Send(PathOf(method), body,
                               {{"content-type", "application/proto"},
                                {"authorization", "Bearer " + BearerFor(method)}});
      EXPECT_LT(binary.status, 500) << PathOf(method) << " " << body.substr(0, 20);
    }
  ExpectAlive();
}

TEST_F(Adversary, WrongContentTypesAndVerbsAreRefused) {
  for (const auto* method : EveryMethod()) {
    const std::string path = PathOf(method);
    for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded",
                             "application/jsonx", "application/grpc"})
      EXPECT_EQ(Send(path, "{}", {{"content-type", type}}).status, 415) << path << " " << type;
    EXPECT_EQ(Send(path, "", {}, "GET").status, 405) << path;
    EXPECT_EQ(Send(path, "{}", {}, "PUT").status, 405) << path;
  }
  EXPECT_EQ(Send("/expanse.control.v1.AuthService/Nothing", "{}", {}).status, 501);
  ExpectAlive();
}

TEST_F(Adversary, NoMethodButThePublicOnesAnswersWithoutTheRightCredential) {
  int guarded = 0;
  for (const auto* method : EveryMethod()) {
    const std::string permission = method->options().GetExtension(common::v1::permission);
    if (permission == "public") continue;
    ++guarded;
    const std::string wrong = permission == "plane" ? owner_ : PlaneBearer();
    for (const std::string& authorization :
         {std::string(), std::string("Bearer"), std::string("Bearer "), "Basic " + wrong,
          "Bearer " + wrong, "Bearer " + first_.api_key.Reveal(), std::string("Bearer a.b.c"),
          "Bearer " + owner_ + "x", "Bearer " + owner_.substr(0, owner_.size() - 2),
          "Bearer " + std::string(20'000, 'a')}) {
      const auto response =
          Send(PathOf(method), "{}",
               {{"content-type", "application/json"}, {"authorization", authorization}});
      EXPECT_EQ(response.status, 401) << PathOf(method) << " " << authorization.substr(0, 40);
    }
  }
  EXPECT_GE(guarded, 16);
}

TEST_F(Adversary, HeadersBeyondTheLimitAreRefused) {
  const auto response = Send("/expanse.control.v1.AuthService/WhoAmI", "{}",
                             {{"content-type", "application/json"},
                              {"authorization", "Bearer " + std::string(100'000, 'a')}});
  EXPECT_GE(response.status, 400);
  EXPECT_LT(response.status, 500);
  ExpectAlive();
}

TEST_F(Adversary, HostileFieldValuesNeverBecomeServerErrors) {
  const std::string texts[] = {"",
                               "' OR '1'='1",
                               "'; DROP TABLE member; --",
                               std::string("a\0b", 3),
                               "\x1b[2J\n\r\t",
                               "%s%n%x $1 $2",
                               "../../../etc/passwd",
                               "\xF0\x9F\x92\xA9 \xE2\x80\xAE",
                               std::string(300'000, 'x'),
                               first_.org.str()};
  const int64_t numbers[] = {
      0, 1, -1, 4, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (const auto* method : EveryMethod())
    for (const auto& text : texts)
      for (const int64_t number : numbers) {
        owner_ = Session(first_.api_key);
        const auto request = Filled(method, text, number);
        const auto response = Send(PathOf(method), request->SerializeAsString(),
                                   {{"content-type", "application/proto"},
                                    {"authorization", "Bearer " + BearerFor(method)}});
        EXPECT_LT(response.status, 500)
            << PathOf(method) << " '" << text.substr(0, 20) << "' " << number << response.body;
      }
  EXPECT_EQ(Org().ListUsers(owner_, {})->users_size(), 1) << "nobody came in that way";
  ExpectAlive();
}

TEST_F(Adversary, ARevokedKeyMintsNothingFromTheMomentItsRevocationIsAnswered) {
  for (int round = 0; round < 5; ++round) {
    const auto created = Org().CreateApiKey(owner_, {});
    ASSERT_TRUE(created.ok());
    const Secret key(created->secret());
    std::atomic<bool> revoked = false;
    std::atomic<int> minted = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i) {
          const bool was_revoked = revoked;
          const auto session = Mint(key);
          if (session.ok()) {
            ++minted;
            EXPECT_FALSE(was_revoked) << "minted after the revocation was answered";
          } else {
            EXPECT_EQ(session.error().code(), Code::kUnauthenticated) << session.error().message();
          }
        }
      });
    v1::RevokeApiKeyRequest revoke;
    revoke.set_key_id(created->key().key_id());
    const auto answer = Org().RevokeApiKey(owner_, revoke);
    EXPECT_TRUE(answer.ok()) << answer.error().message();
    revoked = true;
    for (auto& t : threads) t.join();
    EXPECT_EQ(CodeOf(Mint(key)), Code::kUnauthenticated);
  }
}

TEST_F(Adversary, RacingRegistrationsOfOneComputeLeaveOneLivingToken) {
  const auto registered = RegisterCompute(owner_);
  std::vector<std::string> tokens(6);
  std::vector<std::thread> threads;
  for (auto& token : tokens)
    threads.emplace_back([&] {
      v1::RegisterComputeRequest again;
      again.set_compute_id(registered->compute().compute_id());
      const auto answer = Computes().RegisterCompute(owner_, again);
      ASSERT_TRUE(answer.ok()) << answer.error().message();
      token = answer->install_token();
    });
  for (auto& t : threads) t.join();
  int living = Exchange(registered->install_token()).ok() ? 1 : 0;
  for (const auto& token : tokens) living += Exchange(token).ok() ? 1 : 0;
  EXPECT_EQ(living, 1);
}

TEST_F(Adversary, ExchangesHeartbeatsAndRevocationsThatRaceEndWithTheRevocation) {
  for (int round = 0; round < 5; ++round) {
    const auto registered = RegisterCompute(owner_);
    const std::string id = registered->compute().compute_id();
    const auto first = Exchange(registered->install_token(), "");
    ASSERT_TRUE(first.ok()) << first.error().message();
    std::vector<std::string> credentials(3);
    std::vector<std::thread> threads;
    for (auto& credential : credentials)
      threads.emplace_back([&] {
        const auto exchanged = Exchange(registered->install_token(), "");
        if (exchanged.ok()) credential = exchanged->credential();
        (void)Heartbeat(id);
      });
    threads.emplace_back([&] {
      v1::RevokeComputeRequest revoke;
      revoke.set_compute_id(id);
      EXPECT_TRUE(Computes().RevokeCompute(owner_, revoke).ok());
    });
    for (auto& t : threads) t.join();
    EXPECT_EQ(StateNow(id), v1::COMPUTE_STATE_REVOKED);
    EXPECT_FALSE(Verify(first->credential()).ok());
    for (const auto& credential : credentials) EXPECT_FALSE(Verify(credential).ok());
    EXPECT_FALSE(Exchange(registered->install_token(), "").ok());
  }
}

TEST_F(Adversary, RacingRegistrationsOfOneUserMakeOneUser) {
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      v1::CreateUserRequest user;
      user.set_email("bob@example.org");
      user.set_role("Admin");
      const auto answer = Org().CreateUser(owner_, user);
      if (answer.ok()) {
        ++made;
      } else {
        EXPECT_EQ(answer.error().code(), Code::kAlreadyExists) << answer.error().message();
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(made, 1);
}

TEST(FirstStart, OfTwoAtOnceAgreesOnTheKeys) {
  const platform::TempDir dir;
  platform::SystemClock clock;
  platform::SystemRandom random;
  Options options;
  options.data_dir = dir.path() + "/control";
  std::vector<std::unique_ptr<ControlPlane>> planes(4);
  std::vector<std::thread> threads;
  for (auto& plane : planes)
    threads.emplace_back([&] {
      auto opened = ControlPlane::Open(options, clock, random);
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      plane = std::move(opened).value();
    });
  for (auto& t : threads) t.join();
  const auto made = planes[0]->bootstrap().Create({"o", "a@b", "", UserId()});
  ASSERT_TRUE(made.ok()) << made.error().message();
  for (const auto& plane : planes)
    EXPECT_TRUE(plane->bootstrap().IsLivingApiKey("o", made->api_key).value());
}

TEST(FirstStart, OfTwoBootstrapsMakesOneOrganisation) {
  const platform::TempDir dir;
  platform::SystemClock clock;
  platform::SystemRandom random;
  Options options;
  options.data_dir = dir.path() + "/control";
  auto plane = ControlPlane::Open(options, clock, random);
  ASSERT_TRUE(plane.ok());
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const auto result = (*plane)->bootstrap().Create({"o", "a@b", "", UserId()});
      if (result.ok()) {
        ++made;
      } else {
        EXPECT_EQ(result.error().code(), Code::kAlreadyExists) << result.error().message();
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace expanse::control_plane
