// What a template may not do: reach Python's internals, read other files, or use up the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/template_fixtures.hpp"

namespace ponder::text::jinja {
namespace {

using testing::HasSubstr;

struct Failure {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
};

// How parsing or rendering fails; kind `internal` and the text when it does not.
Failure failure(const std::string& source, const Value& context = Value::dict(),
                const RenderLimits& limits = {}) {
  try {
    return {ErrorKind::internal,
            "rendered: " + ChatTemplate::parse(source).render(context, limits).substr(0, 200)};
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
}

void expect_failure(const std::string& source, ErrorKind kind, const std::string& part,
                    const Value& context = Value::dict()) {
  const Failure got = failure(source, context);
  EXPECT_EQ(got.kind, kind) << source.substr(0, 100) << "\n" << got.message;
  EXPECT_THAT(got.message, HasSubstr(part)) << source.substr(0, 100);
  EXPECT_EQ(got.message.find('\n'), std::string::npos);
  EXPECT_LT(got.message.size(), 400U);
}

std::string many(const std::string& piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

TEST(TemplateGuard, Complaint40_PythonsInternalsAreRefusedByName) {
  const auto refused = [](const std::string& source, const std::string& name) {
    expect_failure(source, ErrorKind::unsupported, "\"" + name + "\"",
                   Value::dict({{"x", "text"}, {"d", Value::dict({{"_secret", 1}})}}));
  };
  refused("{{ x.__class__ }}", "__class__");
  refused("{{ ''.__class__.__mro__[1].__subclasses__() }}", "__class__");
  refused("{{ x['__class__'] }}", "__class__");
  refused("{{ x['__cla' ~ 'ss__'] }}", "__class__");
  refused("{{ x|attr('__class__') }}", "__class__");
  refused("{{ x|attr('_private') }}", "_private");
  refused("{{ [x]|map(attribute='__class__')|list }}", "__class__");
  refused("{{ [x]|selectattr('__class__')|list }}", "__class__");
  refused("{{ [x]|sort(attribute='__class__') }}", "__class__");
  refused("{{ range.__globals__ }}", "__globals__");
  refused("{{ (1).__add__ }}", "__add__");
  refused("{{ nothing._x }}", "_x");
  refused("{{ d._secret }}", "_secret");
  refused("{% set ns = namespace() %}{% set ns.__init__ = 1 %}", "__init__");
  refused("{% macro m() %}{% endmacro %}{{ m.__call__ }}", "__call__");
  refused("{% for a in [1] %}{{ loop.__init__.__globals__ }}{% endfor %}", "__init__");
  refused("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "__init__");
  refused("{{ lipsum.__globals__['os'] }}", "__globals__");
  refused("{% if false %}{{ x.__class__ }}{% endif %}", "__class__");  // already when parsed
  // A format string is a way to attributes too.
  expect_failure("{{ '{0.__class__}'.format(1) }}", ErrorKind::unsupported, "__class__");
  expect_failure("{{ '{0[a]}'.format({'a': 1}) }}", ErrorKind::unsupported, "refused");
  expect_failure("{{ '{:{}}'.format(1, 5) }}", ErrorKind::unsupported, "refused");
  // An ordinary key may begin with an underscore when it is asked for as a key.
  EXPECT_EQ(outcome("{{ {'_k': 1}['_k'] }}{% set _x = 2 %}{{ _x }}", Value::dict()), "12");
}

TEST(TemplateGuard, Complaint40_OtherFilesAndExtensionsAreRefusedByName) {
  for (const std::string tag :
       {"include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'", "block b", "autoescape true"}) {
    expect_failure("{% " + tag + " %}", ErrorKind::unsupported, "\"" + tag.substr(0, tag.find(' ')) + "\"");
  }
  for (const std::string tag : {"do x", "trans", "debug", "exec"}) {
    expect_failure("{% " + tag + " %}", ErrorKind::bad_file, "\"" + tag.substr(0, tag.find(' ')) + "\"");
  }
  for (const std::string name : {"xmlattr", "random", "striptags", "pprint", "urlize", "filesizeformat"}) {
    expect_failure("{{ x|" + name + " }}", ErrorKind::unsupported, "\"" + name + "\"");
  }
  for (const std::string name : {"encode", "format_map", "translate", "maketrans"}) {
    expect_failure("{{ 'a'." + name + "() }}", ErrorKind::unsupported, name);
  }
  expect_failure("{{ lipsum() }}", ErrorKind::unsupported, "lipsum");
}

TEST(TemplateGuard, ValuesCannotBeChanged) {
  Value context = Value::dict({{"l", Value::list({1})}, {"d", Value::dict({{"a", 1}})}});
  for (const std::string change : {"l.append(2)", "l.pop()", "l.clear()", "l.insert(0, 1)", "l.extend([1])",
                                   "l.remove(1)", "l.reverse()", "l.sort()"}) {
    expect_failure("{{ " + change + " }}", ErrorKind::invalid_input,
                   "list." + change.substr(2, change.find('(') - 2), context);
  }
  for (const std::string change :
       {"d.update({})", "d.pop('a')", "d.popitem()", "d.clear()", "d.setdefault('a')"}) {
    expect_failure("{{ " + change + " }}", ErrorKind::invalid_input,
                   "dict." + change.substr(2, change.find('(') - 2), context);
  }
  EXPECT_EQ(outcome("{{ l }}{{ d }}", context), "[1]{'a': 1}");
}

TEST(TemplateGuard, SyntaxErrorsNameTheLine) {
  expect_failure("a\nb\n{{ 1 + }}", ErrorKind::bad_file, "line 3");
  expect_failure("{% if x %}\n\n", ErrorKind::bad_file, "line 2");
  expect_failure("{#\n\n", ErrorKind::bad_file, "comment");
  expect_failure("{{ 'abc\n }}", ErrorKind::bad_file, "string");
  expect_failure("\n\n{% endif %}", ErrorKind::bad_file, "line 3");
  expect_failure("\n{{ x\n  .\n  foo | nope }}", ErrorKind::unsupported, "line 4");
  expect_failure("a\n\n{{ x.y.z }}", ErrorKind::invalid_input, "line 3");
  expect_failure("{% for i in [1] %}\n{{ 'a' + i }}\n{% endfor %}", ErrorKind::invalid_input, "line 2");
}

TEST(TemplateGuard, NestingInTheTemplateIsLimited) {
  const std::size_t n = 300'000;
  expect_failure("{{ " + many("(", n) + many(")", n) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ " + many("[", n), ErrorKind::too_large, "nested");
  expect_failure("{{ " + many("{1:", n), ErrorKind::too_large, "nested");
  expect_failure("{{ " + many("-", n) + "1 }}", ErrorKind::too_large, "nested");
  expect_failure("{{ " + many("not ", n / 2) + "1 }}", ErrorKind::too_large, "nested");
  expect_failure("{{ 1" + many("+1", n) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ 1" + many("**1", n) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ x" + many(".a", n) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ x" + many("[0]", n) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ x" + many("()", n) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ x" + many("|e", n) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ x" + many(" is odd()", n / 8) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ 1" + many(" if 1 else 1", n / 8) + " }}", ErrorKind::too_large, "nested");
  expect_failure("{{ 1" + many(" if 1", n / 8) + " }}", ErrorKind::too_large, "nested");
  expect_failure(many("{% if 1 %}", n / 4), ErrorKind::too_large, "nested");
  expect_failure(many("{% for i in x %}", n / 8), ErrorKind::too_large, "nested");
  expect_failure(many("{% macro m() %}", n / 8), ErrorKind::too_large, "nested");
  expect_failure(many("{% set x %}", n / 8), ErrorKind::too_large, "nested");
  expect_failure(many("{% call m() %}", n / 8), ErrorKind::too_large, "nested");
  expect_failure("{% for " + many("(", n) + "a", ErrorKind::too_large, "nested");
  expect_failure(std::string((std::size_t{1} << 20) + 1, 'x'), ErrorKind::too_large, "bytes");
  // What is long without being deep is fine.
  EXPECT_EQ(outcome(many("{% if 1 %}a{% endif %}", 10'000), Value::dict()), std::string(10'000, 'a'));
  EXPECT_EQ(outcome("{{ '' " + many("~ 1 ", 10'000) + "}}", Value::dict()), std::string(10'000, '1'));
  EXPECT_EQ(outcome("{% if 0 %}" + many("{% elif 0 %}", 10'000) + "{% else %}e{% endif %}", Value::dict()),
            "e");
  EXPECT_EQ(outcome("{{ [" + many("1,", 10'000) + "]|length }}", Value::dict()), "10000");
  EXPECT_EQ(outcome("{{ 0" + many(" or 0", 10'000) + " }}", Value::dict()), "0");
  // And 100 levels of what people write are allowed.
  EXPECT_EQ(outcome("{{ " + many("(", 100) + "1" + many(")", 100) + " }}", Value::dict()), "1");
  EXPECT_EQ(outcome(many("{% if 1 %}", 100) + "x" + many("{% endif %}", 100), Value::dict()), "x");
  EXPECT_EQ(outcome("{{ 'a'" + many("+'a'", 350) + " }}", Value::dict()), std::string(351, 'a'));
}

TEST(TemplateGuard, RecursionIsLimited) {
  expect_failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", ErrorKind::too_large, "levels");
  expect_failure("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
                 ErrorKind::too_large, "levels");
  expect_failure("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
                 ErrorKind::too_large, "levels");
  expect_failure("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", ErrorKind::too_large, "levels");
  expect_failure("{% macro m() %}" + many("{% if 1 %}", 100) + "{{ " + many("(1 + ", 30) + "m()" +
                     many(")", 30) + " }}" + many("{% endif %}", 100) + "{% endmacro %}{{ m() }}",
                 ErrorKind::too_large, "levels");
  expect_failure("{{ [[1]]|map('map', 'map', 'map')|list }}", ErrorKind::invalid_input, "iterable");
  EXPECT_EQ(
      outcome("{% macro m(n) %}{% if n %}{{ n }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100)|length }}",
              Value::dict()),
      "192");
}

TEST(TemplateGuard, WorkIsLimited) {
  expect_failure("{{ range(1000000000) }}", ErrorKind::too_large, "1000000000");
  expect_failure("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                 ErrorKind::too_large, "steps");
  expect_failure("{{ 'a' * 1000000000 }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ 'a' * 9223372036854775807 }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ 'ab' * 9223372036854775807 }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ [1] * 1000000000 }}", ErrorKind::too_large, "steps");
  expect_failure("{{ [1, 2] * 9223372036854775807 }}", ErrorKind::too_large, "steps");
  expect_failure("{{ 'x'.center(1000000000000) }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ 'x'.zfill(9223372036854775807) }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ 'x'|center(9223372036854775807) }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ '%1000000000d' % 1 }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ '%.1000000000d' % 1 }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ '%.1000000000f' % 1 }}", ErrorKind::too_large, "precision");
  expect_failure("{{ '{:1000000000}'.format(1) }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ [1]|tojson(indent=1000000000) }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ 'x\n'|indent(1000000000) }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ [1]|slice(1000000000)|list }}", ErrorKind::too_large, "steps");
  expect_failure("{{ [1]|batch(1000000000, 0)|list }}", ErrorKind::too_large, "steps");
  expect_failure("{{ '\t'.expandtabs(1000000000) }}", ErrorKind::too_large, "bytes");
  expect_failure("{{ ('a' * 1000000).replace('a', 'b' * 1000) }}", ErrorKind::too_large, "");
  expect_failure("{{ ('a' * 1000000).replace('', 'b' * 1000) }}", ErrorKind::too_large, "");
  expect_failure(
      "{% set ns = namespace(s='ab') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      ErrorKind::too_large, "bytes");
  expect_failure("{% for i in range(99999) %}{{ 'x' * 10000 }}{% endfor %}", ErrorKind::too_large, "");
  // A value that is small to hold and endless to write out.
  const std::string doubled =
      "{% set ns = namespace(l=['x']) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% endfor %}";
  for (const std::string use : {"{{ ns.l }}", "{{ ns.l|tojson }}", "{{ ns.l == [ns.l[0], ns.l[0]] * 1 }}x",
                                "{{ ns.l|string|length }}", "{{ [ns.l]|sort }}"}) {
    const Failure got = failure(doubled + use);
    if (use.find("==") == std::string::npos && use.find("sort") == std::string::npos) {
      EXPECT_EQ(got.kind, ErrorKind::too_large) << use << got.message;
    }
  }
  expect_failure(doubled + "{% set a = ns.l %}" + doubled + "{{ a == ns.l }}", ErrorKind::too_large, "steps");
  const std::string keys =
      "{% set ns = namespace(t=(1, 1)) %}{% for i in range(60) %}{% set ns.t = (ns.t, ns.t) %}"
      "{% endfor %}{{ {ns.t: 1} }}";
  expect_failure(keys, ErrorKind::invalid_input, "key");
}

TEST(TemplateGuard, NestedValuesAreLimitedAndTakenApartSafely) {
  const std::string loop = "{% for i in range(90000) %}";
  expect_failure("{% set ns = namespace(l=[]) %}" + loop + "{% set ns.l = [ns.l] %}{% endfor %}",
                 ErrorKind::too_large, "nested");
  expect_failure("{% set ns = namespace(l={}) %}" + loop + "{% set ns.l = {'a': ns.l} %}{% endfor %}",
                 ErrorKind::too_large, "nested");
  expect_failure("{% set ns = namespace(c=1) %}" + loop + "{% set ns.c = cycler(ns.c) %}{% endfor %}",
                 ErrorKind::too_large, "nested");
  expect_failure("{% set ns = namespace(c=1) %}" + loop + "{% set ns.c = joiner(ns.c) %}{% endfor %}",
                 ErrorKind::too_large, "nested");
  expect_failure("{% set ns = namespace(l=1) %}" + loop +
                     "{% for x in [ns.l] %}{% set ns.l = loop %}{% endfor %}{% endfor %}",
                 ErrorKind::too_large, "nested");
  // Chains and rings of namespaces, macros and loops, which are let go of one by one.
  EXPECT_EQ(outcome("{% set ns = namespace() %}" + loop + "{% set ns.n = namespace(n=ns.n) %}{% endfor %}x",
                    Value::dict()),
            "x");
  EXPECT_EQ(
      outcome("{% set ns = namespace() %}" + loop +
                  "{% set p = ns.m %}{% macro m() %}{{ p }}{% endmacro %}{% set ns.m = m %}{% endfor %}x",
              Value::dict()),
      "x");
  EXPECT_EQ(
      outcome("{% set ns = namespace() %}{% macro f(l) %}{% for x in [1] recursive %}{% set ns.l = loop %}"
              "{% endfor %}{% endmacro %}" +
                  loop + "{{ f(ns.l) }}{% endfor %}x",
              Value::dict()),
      "x");
  EXPECT_EQ(outcome("{% set ns = namespace() %}{% set ns.me = ns %}{% for x in [1] %}{{ loop.changed(loop) }}"
                    "{% set ns.l = loop %}{% endfor %}{% macro m() %}{% endmacro %}{% set ns.m = m %}",
                    Value::dict()),
            "True");
  expect_failure("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", ErrorKind::too_large, "nested");
}

// Rings a template ties are untied at the end: what they held is let go of.
TEST(TemplateGuard, NothingIsHeldAfterARendering) {
  const Value held = Value::list({1, 2});
  const Value context = Value::dict({{"v", held}});
  const long before = held.cell().use_count();
  for (const std::string ring :
       {"{% set ns = namespace(v=v) %}{% set ns.me = ns %}", "{% set x = v %}{% macro m() %}{% endmacro %}",
        "{% for i in v %}{{ loop.changed(loop, v) }}{% endfor %}",
        "{% set x = v %}{% for i in v recursive %}{% set l = loop %}{% endfor %}",
        "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{% set y = v %}{% endcall %}",
        "{% set x = v %}{% macro m() %}{% endmacro %}{{ 1 + none }}"}) {
    outcome(ring, context);
    EXPECT_EQ(held.cell().use_count(), before) << ring;
  }
}

TEST(TemplateGuard, LimitsAreTheCallers) {
  const RenderLimits small{.max_steps = 100, .max_text_bytes = 50};
  EXPECT_EQ(failure("{{ 'a' * 50 }}", Value::dict(), small).kind, ErrorKind::internal);
  EXPECT_EQ(failure("{{ 'a' * 51 }}", Value::dict(), small).kind, ErrorKind::too_large);
  EXPECT_EQ(failure(std::string(51, 'x'), Value::dict(), small).kind, ErrorKind::too_large);
  EXPECT_THAT(failure("{{ 'a' * 51 }}", Value::dict(), small).message, HasSubstr("50 bytes"));
  EXPECT_THAT(
      failure("{% for i in range(60) %}{% if i %}{% endif %}{% endfor %}", Value::dict(), small).message,
      HasSubstr("100 steps"));
}

TEST(TemplateGuard, NumbersBeyondTheirRangeAreErrors) {
  expect_failure("{{ 9223372036854775807 + 1 }}", ErrorKind::too_large, "64 bits");
  expect_failure("{{ 9223372036854775807 * 2 }}", ErrorKind::too_large, "64 bits");
  expect_failure("{{ -9223372036854775807 - 2 }}", ErrorKind::too_large, "64 bits");
  expect_failure("{{ (-9223372036854775807 - 1) // -1 }}", ErrorKind::too_large, "64 bits");
  expect_failure("{{ 10 ** 19 }}", ErrorKind::too_large, "64 bits");
  expect_failure("{{ 2 ** 9223372036854775807 }}", ErrorKind::too_large, "64 bits");
  expect_failure("{{ 99999999999999999999 + 1 }}", ErrorKind::too_large, "64 bits");
  expect_failure("{{ 0xffffffffffffffffff }}", ErrorKind::too_large, "64 bits");
  EXPECT_EQ(outcome("{{ (-9223372036854775807 - 1) % -1 }}{{ 1 ** 9223372036854775807 }}", Value::dict()),
            "01");
  EXPECT_EQ(outcome("{{ -(-9223372036854775807 - 1) }}", Value::dict()), "9223372036854775808");
  EXPECT_EQ(outcome("{{ (-9223372036854775807 - 1)|abs }}", Value::dict()), "9223372036854775808");
  EXPECT_EQ(outcome("{{ 'abc'[-9223372036854775807 - 1:9223372036854775807] }}", Value::dict()), "abc");
  EXPECT_EQ(outcome("{{ 'abc'[::9223372036854775807] }}{{ 'abc'[::-9223372036854775807] }}", Value::dict()),
            "ac");
}

}  // namespace
}  // namespace ponder::text::jinja
