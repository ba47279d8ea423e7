// A reference to something callable: two words, no ownership, no allocation.
//
// For parameters that are called before the function returns. Whatever it was made from has to outlive it,
// so never store one past the call it was passed to.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace ponder {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                                              std::is_invocable_r_v<R, F&, Args...>>>
  FunctionRef(F&& callable) noexcept {
    using Callable = std::remove_reference_t<F>;
    if constexpr (std::is_function_v<Callable>) {
      target_.function = reinterpret_cast<void (*)()>(&callable);
      call_ = [](Target target, Args... args) -> R {
        return std::invoke(reinterpret_cast<Callable*>(target.function), std::forward<Args>(args)...);
      };
    } else {
      target_.object = const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
      call_ = [](Target target, Args... args) -> R {
        return std::invoke(*static_cast<Callable*>(target.object), std::forward<Args>(args)...);
      };
    }
  }

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  union Target {
    void* object;
    void (*function)();
  };
  Target target_;
  R (*call_)(Target, Args...);
};

}  // namespace ponder
