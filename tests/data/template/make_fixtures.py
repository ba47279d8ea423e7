#!/usr/bin/env python3
"""Writes the expected renderings beside this file, with jinja2 set up as Hugging Face sets it up.

Needs jinja2 3.1. cases.json: written by hand below; chat.json: the whole templates in chat/ with their requests;
random.json: white space and expressions drawn at random. A case is {template, context, expected} or, where jinja2
fails, {template, context, error}.
"""
import datetime
import json
import pathlib
import random

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2024, 2, 9, 13, 5, 7)


class Generation(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %}: a call block that gives back its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("passed_through"), [], [], body).set_lineno(line)

    def passed_through(self, caller):
        return caller()


def environment():
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env


ENV = environment()


def case(template, context=None, **more):
    context = {} if context is None else context
    made = {"template": template, "context": context, **more}
    try:
        made["expected"] = ENV.from_string(template).render(**json.loads(json.dumps(context)))
        made["expected"].encode()
    except (RecursionError, MemoryError):
        return None
    except Exception as error:  # every failure of a template is a case of its own
        made["error"] = f"{type(error).__name__}: {error}"[:200]
    if " at 0x" in made.get("expected", ""):
        return None
    return made


CONTEXT = {
    "s": "Hello, World", "empty": "", "u": "naïve ß straße ΌΣΟΣ ŉ ﬁn İ 中文 😀", "sp": "  \t pad \n ", "n": 7, "z": 0, "neg": -3,
    "f": 2.5, "big": 123456789012345678901234567890, "t": True, "no": None, "lst": [3, 1, 2], "words": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": 2, "C": 3, "items": "own", "nested": {"x": [1, {"y": "deep"}]}},
    "users": [{"name": "Zoe", "age": 30, "tags": ["x"]}, {"name": "adam", "age": 25, "on": True}, {"name": "Bob", "age": 30}],
    "lines": "one\ntwo\r\n\nfour\n", "html": "<a href=\"x\">'&'</a>", "mixed": [1, "a", None, True, 2.0, [1], {"k": "v"}],
    "quote": "it's \"quoted\"", "ctl": "tab\tnul\u0000bell\u0007\u00a0\u200b\u2028end\u007f", "fl": [0.1, 1e16, 1e-5, 123456.789, -0.0, 1e22, 5e-324],
}

EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
2 ** 3 ** 2
-2 ** 2
2 ** -1
-7 // 2
7 // -2
-7 % 3
7 % -3
-7.5 // 2
-7.5 % 2
7.5 % -2
1 / 2
6 / 2
10 // 3 * 3 + 10 % 3
0.1 + 0.2
1e3
1E-7
1_000 + 1
0x1F + 0b101 + 0o17
00
1.5e10
1e400
true + 1
True and False or None
not true
not not 1
1 and 2
0 or '' or 'x'
0 and fail()
1 < 2 < 3
1 < 2 > 3
3 > 2 == 2
1 == 1.0
1 == true
'a' < 'b'
'a' == "a"
'a' in 'cat'
'x' not in 'cat'
1 in [1, 2]
'b' in d
none in mixed
not 'a' in 'cat'
'a' ~ 1 ~ none ~ true ~ 2.0
1 ~ 2 + 3
'a' 'b' "c"
'ab' * 3
3 * 'ab'
'ab' * -1
[1, 2] + [3]
[1] * 3
(1, 2) + (3,)
(1,)
()
[]
{}
{'a': 1, 'b': [1, 2]}
{1: 'x', true: 'y', none: 2}
{'a': 1, 'a': 2}
[1, 'a', none, true, 2.5, [], {}, ()]
['it\'s', "say \"x\"", 'both \' and "']
[1, 2, 3,]
'yes' if n == 7 else 'no'
'yes' if n == 8
'yes' if n == 8 else 'no' if n == 9 else 'maybe'
(n == 7) and 'x' or 'y'
+n
-neg
- n | abs
-n|string|length
-(n)|abs
n is defined
nope is defined
nope is undefined
nope
nope is none
no is none
n is number
f is number
t is number
s is number
n is integer
t is integer
f is integer
f is float
t is boolean
n is boolean
t is true
no is false
d is mapping
lst is mapping
lst is sequence
d is sequence
s is sequence
nope is sequence
n is sequence
d.keys() is sequence
lst is iterable
s is iterable
n is iterable
nope is iterable
no is iterable
s is string
n is string
n is odd
n is even
f is odd
s is odd
9 is divisibleby 3
9 is divisibleby(4)
9 is divisibleby 0
n is eq 7
n is equalto(7)
n is ne 7
n is gt 6
n is ge 7
n is lt 6
n is le 7
n is greaterthan 3
n is lessthan 3
'a' is in 'abc'
'a' is in ['b']
n is in([7])
no is sameas none
t is sameas true
1 is sameas true
'abc' is lower
'ABC' is upper
'Abc' is lower
'123' is lower
range is callable
s is callable
s.upper is callable
'upper' is filter
'nope' is filter
'odd' is test
not n is odd
n is not odd
n is not none
n is defined and s is defined
n is not defined or s
n is odd == true
s|length is gt 3
s is string and s|length > 3
n is nope
s[0]
s[-1]
s[100]
s[1:3]
s[:-1]
s[::-1]
s[::2]
s[5:1:-2]
s[-3:]
s[10:2]
s[:100]
u[2]
u[6]
u[-1]
u[::-1]
u[3:9]
u|length
lst[0]
lst[-1]
lst[5]
lst[1:]
lst[::-1]
lst[::-2]
lst[:-5:-1]
lst['x']
lst[true]
lst[1.0]
lst.0
lst.1
lst[-4:-1]
lst[::0]
(1, 2, 3)[1:]
range(5)[1:3]
n[0]
n[1:]
no[0]
no[1:]
nope[0]
nope[1:]
nope.x
nope.x.y
d.b
d['b']
d.missing
d.missing.x
d['missing']
d.items
d['items']
d.get('b')
d.get('zz')
d.get('zz', 5)
d['get']('b')
d.keys()
d.values()
d.items()
d['keys']() | list
d.nested.x[1].y
d.nested.x[1]['y']
d.nested.x.1.y
d.nested.y.z
d[1]
d[[1]]
d[1:2]
d == {'b': 1}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
[1, 2] == [1, 2]
[1, 2] == (1, 2)
[1, 2] < [1, 3]
(1, 'a') < (1, 'b')
[1] < 'a'
1 < 'a'
none < 1
nope < 1
nope == nope2
nope == none
nope + 1
1 + nope
'a' + nope
'a' ~ nope
'a' + 1
1 + 'a'
none + 'a'
[1] + 'a'
s - 1
'a' / 2
s.foo
s.foo()
s.upper()
s.lower()
s.nope()
n()
none()
nope()
'a'()
big
big == big
big > 5
big < 5
big is number
big is integer
-big
big|string
big|tojson
big|int
'%d' % big
9223372036854775807
9223372036854775806 + 1
-9223372036854775807
3 in {3: 1}
3.0 in {3: 1}
'x' in nope
nope in lst
nope in d
nope in {nope: 1}
{nope: 1}
{nope: 1}[nope2]
range in d
lst in d
[nope, nope2, none]|unique|list
[range, range]|unique|list|length
{range: 1}|tojson
nope in s
3 in n
'' in s
1 in s
lst is sameas lst
[] or {} or 'last'
loop
namespace(a=1).a
namespace(a=1).b
namespace({'x': 2}, y=3).x
namespace(a=1)['a']
namespace(a=1)
namespace(a=[1, namespace(b=2)])
namespace(1)
dict(a=1, b='x')
dict({'a': 1}, b=2)
dict([('a', 1), ['b', 2]])
dict(x=1).x
range(3)
range(1, 5) | list
range(10, 0, -3) | list
range(0) | list
range(5, 1) | list
range(1, 10, 2)
range(3)[1]
range(3)|length
range(1, 2, 0)
range('a')
range()
range(100000)|length
range(100001)|length
range(1000000000)
range(-9223372036854775807, 9223372036854775807)
range(3).stop
cycler('a', 'b').next()
cycler()
lipsum is defined
joiner(', ') is callable
raise_exception is defined
raise_exception('boom')
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y')
strftime_now('%A %a %B %H:%M:%S %p %I %j %y %% %-d/%-m %e')
strftime_now('%F %T %D %R %U %w %u %W')
""".strip("\n").split("\n")

FILTERS = r"""
s|upper
s|lower
u|upper
u|lower
u|capitalize
u|title
u.title()
u.swapcase()
u.casefold()
'hELLO wORLD'|capitalize
'hello wORLD foo-bar (baz) {x} [y <z don\'t'|title
"they're bill's FRIENDS 3rd".title()
n|upper
no|upper
nope|upper
none|lower
sp|trim
sp|trim|length
'xxaxx'|trim('x')
'abcba'|trim('ab')
'  a '|trim(none)
'  a '|trim(' ')
n|trim
no|trim
nope|trim
'\u00a0\u3000x\u2003\x1c'|trim
s|replace('l', 'L')
s|replace('l', 'L', 1)
s|replace('', '-')
s|replace('l', 1)
123|replace(2, 'x')
nope|replace('a', 'b')
s|replace('o', '')
s|replace('l', 'L', count=2)
s|replace(old='l', new='q')
s|replace('l')
nope|default('x')
no|default('x')
no|default('x', true)
''|default('x', true)
''|default('x')
nope|d('x')
nope|default
nope.x|default('x')
d.zz|default(5)
s|length
lst|length
d|count
nope|length
no|length
n|length
d.items()|length
lst|first
lst|last
''|first
''|last
[]|first
[]|first is undefined
s|first
s|last
u|last
d|first
d|last
nope|first
nope|last
n|first
lst|join
lst|join(', ')
words|join('-')
users|join(', ', attribute='name')
mixed|join('|')
s|join('.')
d|join(',')
nope|join(',')
n|join
lst|join(d='; ')
[none, true, 1.0, nope]|join(',')
s|list
u|list
d|list
lst|list
nope|list
n|list
no|list
d.items()|list
d|items|list
nope|items|list
lst|items
lst|items|list
users|map(attribute='name')|list
users|map(attribute='on')|list
users|map(attribute='on', default='dflt')|list
users|map(attribute='tags.0')|list
users|map(attribute='tags.0', default='none')|list
words|map('upper')|list
words|map('replace', 'a', 'X')|join
words|map('nope')|list
lst|map('string')|list
lst|map('default')|list
[[1, 2], [3]]|map('sum')|list
[[1, 2], [3]]|map('first')|join(',')
lst|map
lst|map(attribute='x', foo=1)|list
nope|map('upper')|list
none|map('upper')|list
[]|map('nope')|list
lst|select('odd')|list
lst|select|list
mixed|select|list
mixed|select('string')|list
mixed|reject('none')|list
mixed|reject|list
lst|select('gt', 1)|list
lst|select('>=', 2)|list
lst|select('in', [1, 2])|list
lst|select('nope')|list
users|selectattr('on')|map(attribute='name')|list
users|selectattr('age', 'equalto', 30)|map(attribute='name')|list
users|selectattr('age', '==', 30)|map(attribute='name')|list
users|rejectattr('age', 'eq', 30)|map(attribute='name')|list
users|rejectattr('on')|map(attribute='name')|list
users|rejectattr('on', 'defined')|map(attribute='name')|list
users|selectattr('name', 'in', ['Zoe'])|list|length
users|selectattr
users|selectattr('tags', 'defined')|first
users|selectattr('age', 'lt', 28)|list
(users|selectattr('on'))|length
users|selectattr('on')|list|length
lst|sort
lst|sort(reverse=true)
lst|sort(true)
words|sort
words|sort(case_sensitive=true)
users|sort(attribute='age')|map(attribute='name')|join(',')
users|sort(attribute='age', reverse=true)|map(attribute='name')|join(',')
users|sort(attribute='age,name')|map(attribute='name')|join(',')
users|sort(attribute='name')|map(attribute='name')|join(',')
users|sort(attribute='zz')
mixed|sort
s|sort|join
d|sort
nope|sort
n|sort
words|unique|list
[1, 1.0, true, 2]|unique|list
words|unique(case_sensitive=true)|list
users|unique(attribute='age')|map(attribute='name')|list
[[1], [1]]|unique|list
lst|reverse|list
s|reverse
u|reverse
d|reverse|list
lst|reverse
nope|reverse|list
n|reverse
lst|sum
[1.5, 2]|sum
users|sum(attribute='age')
lst|sum(start=10)
[]|sum
words|sum
[[1], [2]]|sum(start=[])
lst|min
lst|max
words|min
words|max
words|max(case_sensitive=true)
users|max(attribute='age')
[]|min
[]|max is undefined
mixed|max
'hello'|max
'42'|int
' 42 '|int
'42.9'|int
'-7'|int
'+7'|int
'x'|int
'x'|int(5)
'x'|int(default=5)
''|int
none|int
3.99|int
-3.99|int
true|int
'1_000'|int
'ff'|int(base=16)
'0xff'|int(0, 16)
'0b11'|int(0, 0)
'010'|int(0, 0)
'010'|int
'1e3'|int
'inf'|int
'nan'|int
lst|int
nope|int
1e20|int
'99999999999999999999'|int
'2.5'|float
'x'|float
'x'|float(1.5)
n|float
'1e5'|float
'inf'|float
'-inf'|float
'nan'|float
' 1.5 '|float
'1_0.5'|float
'1.'|float
'.5'|float
'.'|float
'1e'|float
'1e999'|float
'1e-999'|float
none|float
nope|float
n|string
f|string
lst|string
no|string
t|string
nope|string
d|string
2.5|round
3.5|round
2.567|round(2)
2.5|round(0, 'ceil')
2.1|round(0, 'ceil')
2.9|round(0, 'floor')
-2.5|round
42.55|round(1, 'floor')
42|round
42|round(1)
15|round(-1)
25|round(-1)
1234.5|round(-2)
0.15|round(1)
2.675|round(2)
n|round(0, 'ceil')
s|round
1.5|round(1, 'x')
neg|abs
-2.5|abs
true|abs
s|abs
d|items|list
d|dictsort
d|dictsort(true)
d|dictsort(reverse=true)
{'x': 2, 'y': 1}|dictsort(by='value')
{'x': 2, 'y': 1}|dictsort(false, 'value')
{'x': 2}|dictsort(by='z')
lst|dictsort
nope|dictsort
users|groupby('age')
users|groupby('age')|map(attribute='grouper')|list
users|groupby('age')|map('first')|list
users|groupby('age')|map(attribute='list')|map('length')|list
users|groupby('on', default=false)|map(attribute='grouper')|list
users|groupby('nope')|list
words|groupby(0)|list
range(7)|batch(3)|list
range(7)|batch(3, 'x')|list
[]|batch(2)|list
range(3)|batch(0)|list
range(7)|slice(3)|list
range(7)|slice(3, 'x')|list
range(2)|slice(4)|list
range(2)|slice(0)|list
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, true, true)
lines|indent(2, blank=true)
lines|indent('> ')
lines|indent(width=3, first=true)
''|indent
'x'|indent(first=true)
n|indent
'a\n\nb'|indent(1)
html|escape
html|e
html|e|e
html|forceescape
html|e|forceescape
html|safe
html|safe|e
(html|safe) + '<'
'<' + (html|safe)
('<'|safe) ~ '<'
('<'|safe) * 2
('<'|safe).upper() + '<'
['<'|safe, '<']|join
('<x>'|safe)|replace('x', '<')
('<x>'|safe).replace('x', '<')
('<x>'|safe)|upper is escaped
('<x>'|safe)|string is escaped
s is escaped
('<'|safe).join(['<', '>'])
[('<'|safe)]
('%s'|safe) % 'x'
('a<b'|safe).split('<') | map('escape') | join
('<'|safe)|trim
n|safe
'a b/c?d=e&f~ü'|urlencode
{'a b': 1, 'c/d': 'ü'}|urlencode
[('a', 1), ('b', 'x y')]|urlencode
n|urlencode
s|wordcount
'one two-three four_five, été'|wordcount
n|wordcount
'x'|center(5)
'xy'|center(5)
'xyz'|center(6)
''|center(3)
s|center
'%s is %d'|format('x', 3)
'%s'|format(1, 2)
'%s %s'|format('x')
'%(a)s-%(b)05.1f'|format(a='x', b=2.25)
'%5d|%-5d|%05d|%+d|% d'|format(42, 42, 42, 42, 42)
'%x %X %o %#x %#o'|format(255, 255, 8, 255, 8)
'%e %E %g %G %.3f %10.2f|%-10.2f|'|format(12345.678, 0.00012, 1e10, 1e-10, 3.14159, 2.5, 2.5)
'%c%c'|format(65, 'z')
'%r %a'|format('it\'s', 'x')
'%5s|%-5s|%.2s|'|format('abc', 'abc', 'abc')
'%*d|%-*d|'|format(5, 42, 5, 42)
'%d%%'|format(50)
'%d'|format(3.99)
'%d'|format('x')
'%i %u'|format(1, 2)
'%z'|format(1)
'%'|format(1)
'%s'|format([1, 'a'])
'%s' % 'x'
'%s %s' % ('x', 1)
'%s' % [1, 2]
'%s' % none
'%s' % nope
'%s' % {'a': 1}
'%(a)s' % {'a': 1}
'%(b)s' % {'a': 1}
'abc' % {'a': 1}
'abc' % [1]
'abc' % 1
'%05s' % 'ab'
'%.0f %.0f' % (0.5, 1.5)
'%+.2e' % -0.0
'%#.0f' % 3.0
'%s|truncate' | truncate(3)
'foo bar baz qux'|truncate(9)
'foo bar baz qux'|truncate(9, true)
'foo bar baz qux'|truncate(11)
'foo bar baz qux'|truncate(11, false, '...', 0)
'foo bar baz qux'|truncate(4, end='')
'foobarbazqux'|truncate(6, leeway=0)
'foo'|truncate(1)
n|truncate
d|attr('b')
d|attr('items') is callable
s|attr('upper')
namespace(x=1)|attr('x')
d|tojson
mixed|tojson
u|tojson
u|tojson(ensure_ascii=true)
u|tojson(true)
ctl|tojson
ctl|tojson(ensure_ascii=true)
quote|tojson
fl|tojson
d|tojson(indent=2)
d|tojson(indent=4, sort_keys=true)
d|tojson(indent=0)
d|tojson(indent='--')
d|tojson(indent=-1)
d|tojson(indent=none)
d|tojson(separators=(',', ':'))
d|tojson(separators=[';', '='], indent=1)
d|tojson(indent=2, separators=(', ', ': '))
d|tojson(separators=(','))
[]|tojson(indent=2)
[[], {}, [{}], {'a': []}]|tojson(indent=2)
{1: 1, 2.5: 2, none: 3, true: 4}|tojson
{(1, 2): 1}|tojson
(1, 2)|tojson
nope|tojson
range(3)|tojson
d.items()|tojson
namespace(a=1)|tojson
[nope]|tojson
{1: 1, 'a': 2}|tojson(sort_keys=true)
1.0|tojson
('inf'|float)|tojson
('nan'|float)|tojson
'</script>'|tojson
'\u2028'|tojson
''|tojson
no|tojson
t|tojson
{'a': {'b': [1, {'c': none}]}}|tojson(indent=1)
s|upper|lower|title
s|nope
s|upper()
s|upper(1)
s|trim|upper|length
(s|upper)[0]
s|upper ~ 'x'
'a' ~ s|upper
1 + lst|length
lst|length + 1
-lst|length
not lst|length
lst|map('string')|join(',')|upper
fl
fl|join(' ')
ctl
[ctl]
[u]
[quote]
mixed
users
d
[1.0, 1.5, 100.0, 1e15, 1e16, 1e17, 123456789.123, 1e-4, 1e-5, 0.0001234]
[1/3, 2/3, 10/3, 1e100, 1.7976931348623157e308]
""".strip("\n").split("\n")

METHODS = r"""
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.split(sep=',', maxsplit=1)
' a  b c '.split()
' a  b c '.split(none, 1)
' a  b c '.split(none, 0)
' a  b c '.rsplit(none, 1)
' a  b c '.rsplit()
''.split()
''.split(',')
'abc'.split('')
'a,b,c'.rsplit(',', 1)
'a,b,c'.rsplit(',', 0)
'a--b--c'.rsplit('--', 1)
'aaa'.split('aa')
'aaa'.rsplit('aa', 1)
lines.splitlines()
lines.splitlines(true)
'a\x0bb\x0cc\x1cd\x85e\u2028f'.splitlines()
''.splitlines()
s.startswith('Hell')
s.startswith(('x', 'H'))
s.startswith('e', 1)
s.startswith('', 12)
s.startswith('', 13)
s.startswith('World', 7, 9)
s.startswith('l', -2)
s.startswith(1)
s.endswith('World')
s.endswith(('x', 'ld'))
s.endswith('o', 0, 5)
s.endswith('')
u.startswith('ß', 6)
s.find('o')
s.find('o', 5)
s.find('o', 5, 7)
s.find('zz')
s.find('')
s.find('', 12)
s.find('', 13)
u.find('中')
u.rfind('ß')
s.rfind('o')
s.rfind('')
s.index('W')
s.index('zz')
s.rindex('l')
s.rindex('zz')
s.count('l')
s.count('')
s.count('l', 4)
'aaaa'.count('aa')
u.count('')
'-'.join(['a', 'b'])
'-'.join('abc')
'-'.join([1])
'-'.join(d)
'-'.join([])
sp.strip()
sp.lstrip()
sp.rstrip()
'xyxabcyx'.strip('xy')
'xyxabcyx'.lstrip('xy')
'xyxabcyx'.rstrip('xy')
'x'.strip('')
'ßaß'.strip('ß')
s.strip(1)
s.replace('l', 'L')
s.replace('l', 'L', 1)
s.replace('l', 'L', 0)
s.replace('', '.', 3)
s.replace('l')
s.replace('l', 1)
'ß'.upper()
'ŉ'.upper()
'ΑΣ'.lower()
'ΑΣ Σ ΣΑ Α.Σ'.lower()
'ǆ'.title()
'ǆabc'.capitalize()
'ß'.capitalize()
'iİ'.lower()
'HeLLo'.swapcase()
'abc'.isalpha()
'ab1'.isalpha()
''.isalpha()
'中é'.isalpha()
'ab1'.isalnum()
'a b'.isalnum()
'123'.isdigit()
'²'.isdigit()
'½'.isdigit()
'½'.isnumeric()
'三'.isnumeric()
'12'.isdecimal()
'²'.isdecimal()
'٣'.isdecimal()
' \t\n'.isspace()
''.isspace()
'abc'.islower()
'aBc'.islower()
'a1'.islower()
'1'.islower()
'ABC'.isupper()
'AB1'.isupper()
'Ⅷ'.isupper()
'ª'.islower()
'Hello World'.istitle()
'Hello world'.istitle()
''.istitle()
'abc'.isascii()
'é'.isascii()
''.isascii()
'a\n'.isprintable()
'abc é'.isprintable()
'abc_1'.isidentifier()
'1abc'.isidentifier()
'prefix-x'.removeprefix('prefix-')
'prefix-x'.removeprefix('nope')
'x.txt'.removesuffix('.txt')
'x.txt'.removesuffix('')
'42'.zfill(5)
'-42'.zfill(5)
'+42'.zfill(2)
'abc'.zfill(0)
''.zfill(3)
'x'.ljust(4) ~ '|'
'x'.rjust(4, '*')
'x'.center(4, '*')
'xy'.center(5, '*')
'x'.center(4, '**')
'x'.ljust(4, 'é')
'abcdef'.center(3)
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('=')
'abc'.rpartition('=')
'abc'.partition('')
'a\tb\tcd\te'.expandtabs()
'a\tb'.expandtabs(4)
'{} {}'.format(1, 'a')
'{0} {1} {0}'.format('x', 'y')
'{a}-{b}'.format(a=1, b=none)
'{} {a}'.format(1, a=2)
'{{}} {}'.format(1)
'{'.format(1)
'}'.format(1)
'{} {}'.format(1)
'{x}'.format(1)
'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
'{:05d} {:+d} {:x} {:#x} {:b} {:,} {:_}'.format(42, 42, 255, 255, 5, 1234567, 1234567)
'{:.2f} {:10.3f} {:e} {:g} {:%} {:.1%}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.25, 0.123)
'{:,.2f}'.format(1234567.891)
'{!r} {!s}'.format('x', 'y')
'{:d}'.format('x')
'{:s}'.format(1)
'{:.2}'.format('abc')
'{:5}|{:5}'.format(1, 'a')
'{:5}|'.format(true)
'{}'.format([1, 'a'])
'{}'.format(1.0)
'{:<+8.2f}|'.format(1.5)
'{:08.2f}'.format(-1.5)
'{:^+9,d}|'.format(12345)
s.upper().lower().title()
lst.index(1)
lst.index(9)
lst.count(1)
(1, 2, 1).count(1)
(1, 2).index(2)
lst.copy()
lst.append(4)
lst.pop is defined and false
lst.append is defined
lst.sort()
lst.extend([1])
d.update({'x': 1})
d.pop('b')
d.setdefault('q', 1)
d.clear()
d.copy()
d.get()
d.get('a', 1, 2)
d.get([1])
d.keys()|list|sort
d.values()|list|length
'a' in d.keys()
1 in d.values()
('b', 1) in d.items()
d.items()|first
d.items()[0]
d.keys()|join(',')
s.upper
s.upper(1)
s.split(x=1)
s.split(',', ',')
s.startswith(*['Hell'])
dict(**{'a': 1})
s.replace(*('l', 'L'), **{})
range(*[1, 4])|list
'{a}'.format(**{'a': 5})
""".strip("\n").split("\n")

STATEMENTS = [
    "{% for x in lst %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in lst %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in lst %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in lst %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in lst %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in lst %}{{ loop.cycle() }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in [1, 1, 2] %}{% if loop.changed(x, 'k') %}{{ x }}{% endif %}{% endfor %}",
    "{% for x in lst %}{{ loop.depth }}{{ loop.depth0 }}{% for y in lst %}{{ loop.depth }}{% endfor %}{% endfor %}",
    "{% for x in lst if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}",
    "{% for x in lst if x > 5 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in [] %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nope %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in no %}{{ x }}{% endfor %}",
    "{% for x in n %}{{ x }}{% endfor %}",
    "{% for c in 'héy' %}[{{ c }}]{% endfor %}",
    "{% for k in d %}{{ k }} {% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}-{{ b }} {% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}",
    "{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, in [[1]] %}{{ a }}{% endfor %}",
    "{% for a, b in [1] %}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in lst %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in lst %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in lst %}{% break %}{% else %}E{% endfor %}",
    "{% for x in lst %}{% continue %}{% else %}E{% endfor %}",
    "{% for x in lst %}{{ x }}{% if loop.index == 2 %}{% break %}{% endif %}{% else %}E{% endfor %}",
    "{% for x in lst %}{% for y in lst %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% break %}",
    "{% for x in lst %}{% endfor %}{% continue %}",
    "{% for x in lst %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% set x = 1 %}{% for i in lst %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in lst %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b is defined }}",
    "{% set d.x = 1 %}",
    "{% set nope.x = 1 %}",
    "{% if true %}{% set x = 5 %}{% endif %}{{ x }}",
    "{% if false %}{% set n = 5 %}{% endif %}{{ n }}",
    "{% set n = n + 1 %}{{ n }}",
    "{% for i in lst %}{{ q }}{% set q = i %}{% endfor %}",
    "{% for i in lst %}{% if i == 1 %}{% set n = i %}{% endif %}{{ n }}{% endfor %}{{ n }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [1, 2, 3] %}{{ a }}",
    "{% set (a, b) = (1, 2) %}{{ a }}{{ b }}",
    "{% set a = 1, 2 %}{{ a }}",
    "{% set a = b = 1 %}",
    "{% set 1 = 2 %}",
    "{% set true = 2 %}",
    "{% set x %}block {{ n }}{% endset %}[{{ x }}]",
    "{% set x | upper %}block {{ n }}{% endset %}[{{ x }}]",
    "{% set x | upper | replace('B', 'q') %}block{% endset %}[{{ x }}]",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}",
    "{% for i in lst %}{% set x %}{{ i }}{% if i == 1 %}{% break %}{% endif %}{% endset %}{{ x }}{% endfor %}",
    "{% filter upper %}abc {{ s }}{% endfilter %}",
    "{% filter replace('a', 'b')|upper %}banana{% endfilter %}",
    "{% filter trim %}  x  {% endfilter %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
    "{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}{% endwith %}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(q=2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a=1, b) %}{{ a }}{% endmacro %}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(a) %}{{ a }}{{ varargs|length }}{% for k, v in kwargs.items() %}{{ k }}{{ v }}{% endfor %}{% endmacro %}{{ m(1, 2, 3, z=9) }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ n }}{% endcall %}",
    "{% macro m() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b=5) m() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% call n %}y{% endcall %}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro m() %}{{ later }}{% endmacro %}{{ m() }}{% set later = 1 %}{{ m() }}",
    "{% set x = 1 %}{% macro m() %}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}",
    "{% for i in lst %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}",
    "{% macro m() %}a{% endmacro %}{{ m }}{{ m.name }}{{ m is callable }}",
    "{% macro outer() %}{% macro inner(y) %}<{{ y }}>{% endmacro %}{{ inner(1) }}{% endmacro %}{{ outer() }}",
    "{% macro m(x) %}{{ x|upper }}{% endmacro %}{{ m('a') ~ m('b') }}{{ m('c')|length }}",
    "{% macro m() %}{% for i in range(2) %}{{ i }}{{ loop.index }}{% endfor %}{% endmacro %}{% for j in lst %}{{ m() }}{{ loop.index }}{% endfor %}",
    "{% for x in [[1, [2, [3]]]] recursive %}{% for y in x %}{{ y }}{% endfor %}{% endfor %}",
    "{% for x in [{'v': 1, 'c': [{'v': 2, 'c': []}, {'v': 3}]}] recursive %}{{ loop.depth }}{{ x.v }}{% if x.c %}({{ loop(x.c) }}){% endif %}{% endfor %}",
    "{% for x in lst %}{{ loop([1]) }}{% endfor %}",
    "{% for loop in lst %}{{ loop }}{% endfor %}",
    "{% for x in lst %}{{ loop }}{% endfor %}",
    "{% for x in lst if loop.index > 1 %}{{ x }}{% endfor %}",
    "{% for y in [1, 2] %}{% for x in lst if loop.index == 2 %}{{ x }}{% endfor %}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in lst if not ns.stop %}{{ x }}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% set g = lst|map('string') %}{{ g|join }}{{ g|join }}",
    "{% set g = lst|map('string') %}{% for x in g %}{{ x }}{% break %}{% endfor %}{{ g|join }}",
    "{% set g = lst|select %}{{ g|first }}{{ g|list }}",
    "{% for x in lst|map('string') %}{{ x }}{{ loop.last }}{{ loop.length }}{% endfor %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.next() }}",
    "{% set j = joiner('|') %}{% for x in lst %}{{ j() }}{{ x }}{% endfor %}",
    "{% set j = joiner() %}{{ j() }}a{{ j() }}b",
    "{% if n %}a{% elif z %}b{% else %}c{% endif %}",
    "{% if z %}a{% elif n %}b{% else %}c{% endif %}",
    "{% if z %}a{% elif z %}b{% else %}c{% endif %}",
    "{% if z %}a{% endif %}",
    "{% if %}{% endif %}",
    "{% if n %}",
    "{% if n %}{% else %}{% elif z %}{% endif %}",
    "{% endif %}",
    "{% if n %}{% endfor %}",
    "{% for x in lst %}{% endif %}{% endfor %}",
    "{% nope %}",
    "{% 1 %}",
    "{% %}",
    "{{ }}",
    "{{ 1 2 }}",
    "{{ (1 }}",
    "{{ 1) }}",
    "{{ [1, 2 }}",
    "{{ {'a' 1} }}",
    "{{ {'a': 1,} }}",
    "{{ 'abc }}",
    "{{ a b }}",
    "{{ 1 + }}",
    "{{ x. }}",
    "{{ x.'a' }}",
    "{{ x[ }}",
    "{{ lst[] }}",
    "{{ lst[1,2] }}",
    "{{ a is }}",
    "{{ a is not }}",
    "{{ a | }}",
    "{{ n is odd is even }}",
    "{{ f(a=1, 2) }}",
    "{{ f(a=1, a=2) }}",
    "{{ @ }}",
    "{{ 'a' ? 'b' }}",
    "{{ a = 1 }}",
    "{{ a; b }}",
    "{{ 1if true else 2 }}",
    "{# open",
    "{% raw %}x",
    "{% raw %}{{ x }}{% if %}{# c #}{% endraw %}",
    "a {%- raw -%} {{ x }} {%- endraw -%} b",
    "a\n  {% raw %}\n  x\n  {% endraw %}\nb",
    "a\n  {%+ raw %}  x\n  {%+ endraw +%}\nb",
    "{% print n, s %}",
    "{% print %}",
    "{% generation %}{{ n }}{% set q = 1 %}{% endgeneration %}{{ q is defined }}",
    "{% for x in lst %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% generation %}x",
    "{% if n: %}a{% endif %}",
    "{% for x in lst: %}{{ x }}{% endfor %}",
    "{% if 'a' in d and d.a == 2 %}y{% endif %}",
    "{% if s|nope %}{% endif %}",
    "{% if false %}{{ s|nope }}{% endif %}ok",
    "{{ 'a' if true else s|nope }}",
    "{% if false %}{{ s is nope }}{% endif %}ok",
    "{% for x in [] %}{{ s|nope }}{% endfor %}",
    "{%- set x = [] -%}{%- for i in lst -%}{%- set _ = x.append(i) -%}{%- endfor -%}{{ x }}",
    "{% do lst.append(1) %}",
    "{{ lst.append is defined }}{{ d.pop is defined }}{{ d.update }}",
    "{{ '\\n\\t\\\\\\'\\\"\\x41\\u00e9\\U0001F600\\101\\q' }}",
    "{{ \"it's\" }}{{ 'say \"x\"' }}",
    "{{ 'line\nbreak' }}",
    "{{ 'a\\\nb' }}",
    "{{ '\\x4' }}",
    "{{ '\\uZZZZ' }}",
    "{{ '{{ x }}' }}{{ '%}' }}",
    "{{ {'a': {'b': 1}}.a.b }}",
    "{{ {'a': {'b': 1}}['a']}}",
    "{{{'a': 1}}}",
    "{{ {'a': {}} }}",
    "{{ 1 }}{{- 2 -}}  {{ 3 }}",
    "{{ n -}} \n x",
    "{{ n }}\n",
    "{{ n }}\n\n",
    "\n{{ n }}",
    "a\r\nb\rc\n{{ n }}\r\n",
    "{{ 'a\r\nb' }}",
    "x\u00a0{%- if n -%}\u3000y{% endif %}",
    "  {% if n %}\n  x\n  {% endif %}\n  y\n",
    "  {%+ if n %}\n  x\n  {%+ endif +%}\n  y\n",
    "\t{# c #}\nx {# c #}\n  {#- c -#}  \n y",
    "{#+ c +#}\nx",
    "{#-#}x{#--#}y{##}z",
    "  {{ n }}  {{ n }}\n   {{ n }}\n",
    "{% if n -%}\n\n  x\n{%- endif %}\n\n",
    "{% if n +%}\nx{% endif %}",
    "{%- if n -%}{%- endif -%}",
    "a{%if n%}b{%endif%}c",
    "{%set x=1%}{{x}}",
    "{ { n } } {% if n %} { % {% endif %}",
    "{{'{'}}{{'}'}}",
    "{% set loop = 1 %}{{ loop }}",
    "{% set été = 1 %}{{ été }}",
    "{% set a1_b = 1 %}{{ a1_b }}",
    "{{ _x is defined }}{% set _x = 1 %}{{ _x }}",
    "{{ none }}{{ None }}{{ true }}{{ True }}{{ false }}",
    "{{ n.real }}" if False else "{{ n }}",
    "{{ users[0].name }}{{ users[-1]['name'] }}{{ users[9].name }}",
    "{{ users.0.name }}",
    "{{ 5 is divisibleby 2 or n is odd }}",
    "{{ raise_exception('System message must be at the beginning.') }}",
    "{{ raise_exception(5) }}",
    "{% if d.items is callable %}m{% endif %}{% if d['items'] is string %}s{% endif %}",
    "{{ d|length }}{{ 'x' * n }}{{ [0] * 3 }}",
    "{{ (lst, d)|length }}",
    "{{ lst|map('abs')|sum }}",
    "{{ 'abc'|map('upper')|join('-') }}",
    "{{ ({'a': none}).a is none }}",
    "{% set content = users[0].content %}{{ content is undefined }}{{ content }}",
    "{% set m = users[0] %}{{ m.get('content') or 'dflt' }}{{ m.get('content', '') | trim }}",
    "{{ 'a' if nope else 'b' }}{{ nope and 1 }}{{ nope or 1 }}",
    "{{ [nope, 1] }}{{ {'a': nope} }}",
    "{{ ('a', 'b') in [('a', 'b')] }}",
    "{{ 10 ** 18 }}{{ 2 ** 62 }}{{ 7 ** 0 }}{{ 0 ** 0 }}",
    "{{ 0 ** -1 }}",
    "{{ 1 // 0 }}",
    "{{ 1 % 0 }}",
    "{{ 1 / 0 }}",
    "{{ 1.0 / 0 }}",
    "{{ 5.0 // 2 }}{{ 5 // 2.0 }}{{ -5.0 // 2 }}{{ 5.5 % 2 }}{{ 2.0 ** 3 }}{{ 4 ** 0.5 }}",
    "{{ 'x' ~ [1] ~ {'a': 'b'} }}",
    "{% set x = {'a': 1} %}{% set y = dict(x, b=2) %}{{ y }}{{ x }}",
    "{{ joiner }}" if False else "{{ joiner is defined }}",
]


def chat_cases():
    """Each chat/NAME.jinja against the requests of chat/requests.json."""
    cases = []
    requests = json.loads((HERE / "chat" / "requests.json").read_text())
    for path in sorted((HERE / "chat").glob("*.jinja")):
        for request in requests:
            made = case(path.read_text(), request["context"])
            made.pop("template")
            made["file"] = path.name
            made["request"] = request["name"]
            made.pop("context")
            cases.append(made)
    return cases


def random_whitespace(rng):
    """A small template whose only interest is where its white space goes."""
    def blank():
        return "".join(rng.choice([" ", "  ", "\n", "\n\n", "\t", "x", "", "", "\r\n", "\u00a0"]) for _ in range(rng.randint(0, 3)))

    def tag(kind):
        left, right = rng.choice(["", "", "-", "+"]), rng.choice(["", "", "-", "+"])
        pad = rng.choice(["", " ", "\n"])
        if kind == "comment":
            return "{#" + left + rng.choice([" c ", "", "c\nd", "-", "{{ x }}"]) + right + "#}"
        if kind == "out":
            right = "" if right == "+" else right
            return "{{" + left + " " + rng.choice(["1", "'a\nb'", "e"]) + pad + " " + right + "}}"
        return "{%" + left + " " + kind + pad + " " + right + "%}"

    def body(depth):
        out = blank()
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(["out", "comment", "if", "for", "set", "raw", "setblock"] if depth < 2 else ["out", "comment", "set"])
            if kind == "if":
                out += tag("if 1") + body(depth + 1) + (tag("else") + body(depth + 1) if rng.random() < 0.3 else "") + tag("endif")
            elif kind == "for":
                out += tag("for i in [1, 2]") + body(depth + 1) + tag("endfor")
            elif kind == "set":
                out += tag("set q = 1")
            elif kind == "setblock":
                out += tag("set q") + body(depth + 1) + tag("endset") + "[{{ q }}]"
            elif kind == "raw":
                out += tag("raw").replace("+%}", "%}") + blank() + "{{ r }}" + blank() + tag("endraw")
            else:
                out += tag(kind)
            out += blank()
        return out

    return body(0)


def random_expression(rng, depth=0):
    """An expression over CONTEXT; about half of them fail, which is half of the point."""
    def leaf():
        return rng.choice(["1", "0", "-2", "2.5", "'ab'", "''", "none", "true", "false", "[1, 2]", "[]", "{'a': 1}", "(1, 'x')",
                           "n", "s", "f", "lst", "d", "words", "nope", "no", "t", "u", "users", "1e3", "neg"])

    if depth > 3 or rng.random() < 0.2:
        return leaf()
    sub = lambda: random_expression(rng, depth + 1)
    kind = rng.randrange(9)
    if kind == 0:
        return f"{sub()} {rng.choice(['+', '-', '*', '/', '//', '%', '~', '~'])} {sub()}"
    if kind == 1:
        return f"{sub()} {rng.choice(['==', '!=', '<', '>=', 'in', 'not in'])} {sub()}"
    if kind == 2:
        return f"{sub()} {rng.choice(['and', 'or'])} {sub()}"
    if kind == 3:
        return rng.choice(["not ", "-", "+", ""]) + sub()
    if kind == 4:
        # "lst and" keeps jinja2 from folding constants, which changes what a wrong slice does.
        return f"(lst and {sub()})" + rng.choice(["[0]", "[-1]", "[1:]", "[::-1]", "[:2]", "['a']", ".a", ".b", "[n]"])
    if kind == 5:
        return f"({sub()})|" + rng.choice(["length", "string", "upper", "list", "first", "last", "join(',')", "tojson", "int", "float", "abs", "trim", "default('q')",
                                           "default('q', true)", "sort", "reverse|list", "unique|list", "sum", "min", "max", "title", "capitalize", "replace('a', 'b')",
                                           "map('string')|list", "select|list", "reject|list", "dictsort", "items|list", "indent(1)", "round", "batch(2)|list", "wordcount"])
    if kind == 6:
        return f"({sub()}) is " + rng.choice(["defined", "none", "string", "number", "integer", "mapping", "sequence", "iterable", "odd", "true", "boolean", "float", "lower", "undefined"])
    if kind == 7:
        return f"{sub()} if {sub()} else {sub()}"
    return f"({sub()})." + rng.choice(["upper()", "split()", "strip()", "keys()|list", "items()|list", "get('a')", "startswith('a')", "title()", "count('a')", "replace('a', '')"])


def random_statements(rng):
    """A template about scopes: loops, macros, calls, with, set, namespaces and filters inside one another."""
    names = ["x", "y", "i", "q", "n", "z"]
    sequences = ["[1,2,3]", "range(3)", "lst", "words", "'ab'", "d", "[]", "[1,1,2]", "users|map(attribute='name')", "lst|select('gt',1)", "d.keys()"]
    pairs = ["d.items()", "[(1,2),(3,4)]", "d|dictsort"]
    leaves = names + ["1", "2", "'ab'", "none", "ns.v", "s", "no", "true", "nope"]

    def expression(depth=0):
        kind = rng.randrange(9)
        sub = lambda: expression(depth + 1)
        if kind < 3 or depth > 2:
            return rng.choice(leaves)
        if kind == 3:
            return f"{sub()} ~ {sub()}"
        if kind == 4:
            return f"({sub()} == {sub()})"
        if kind == 5:
            return f"({sub()})|" + rng.choice(["string", "default(5)", "upper", "string|length", "trim", "e", "title"])
        if kind == 6:
            return f"{rng.choice(['m', 'k'])}({sub()})" if rng.random() < 0.3 else rng.choice(names)
        if kind == 7:
            return f"({sub()} if {sub()} else {sub()})"
        return f"({sub()} is " + rng.choice(["defined", "none", "string", "number"]) + ")"

    def loop_control():
        return rng.choice(["{% break %}", "{% continue %}", "{% if loop.index==2 %}{% break %}{% endif %}", "{% if loop.first %}{% continue %}{% endif %}", "", ""])

    def body(depth, in_loop=False):
        out = ""
        for _ in range(rng.randint(1, 3)):
            kind = rng.randrange(16) if depth < 4 else rng.choice([0, 1, 2])
            name, value = rng.choice(names), expression()
            if kind < 2:
                out += "{{ " + value + " }};"
            elif kind == 2:
                out += "{% set " + name + " = " + value + " %}"
            elif kind == 3:
                out += "{% set ns.v = " + value + " %}"
            elif kind == 4:
                out += "{% if " + value + " %}" + body(depth + 1, in_loop) + "{% else %}" + body(depth + 1, in_loop) + "{% endif %}"
            elif kind < 8:
                head = "x, y in " + rng.choice(pairs) if rng.random() < 0.2 else name + " in " + rng.choice(sequences)
                test = " if " + value if rng.random() < 0.3 else ""
                rest = "{% else %}" + body(depth + 1, in_loop) if rng.random() < 0.4 else ""
                out += "{% for " + head + test + " %}" + body(depth + 1, True) + loop_control() + body(depth + 1, True) + rest + "{% endfor %}"
            elif kind == 8:
                tail = rng.choice(["", "{{ caller() if caller }}", "{{ varargs }}", "{{ kwargs }}"])
                out += "{% macro " + rng.choice(["m(x=0, y=0)", "k(x=1, y=x)", "m(y=n, x=3)"]) + " %}" + body(depth + 2) + tail + "{% endmacro %}"
            elif kind == 9:
                out += "{% call" + rng.choice(["", "(x=1)", "(x=2, y=x)"]) + " c(" + rng.choice(["", "1", "x"]) + ") %}" + body(depth + 1) + "{% endcall %}"
            elif kind == 10:
                out += "{% with " + name + " = " + value + " %}" + body(depth + 1, in_loop) + "{% endwith %}"
            elif kind == 11:
                out += "{% set " + name + " %}" + body(depth + 1, in_loop) + "{% endset %}"
            elif kind == 12:
                out += "{% filter upper %}" + body(depth + 1, in_loop) + "{% endfilter %}"
            elif kind == 13:
                out += "{% generation %}" + body(depth + 1) + "{% endgeneration %}"
            elif kind == 14:
                out += "{% set ns = namespace(v=" + value + ") %}"
            elif in_loop:
                field = rng.choice(["index", "length", "cycle(1,2)", "changed(x)", "previtem", "nextitem", "last", "revindex", "depth"])
                out += "{{ loop." + field + " }}"
        return out

    return STATEMENT_PRELUDE + body(0)


STATEMENT_PRELUDE = (
    "{% set ns = namespace(v=0) %}{% set x = 1 %}{% set y = 'Y' %}{% set i = 3 %}{% set q = '<' %}{% set n = 5 %}{% set z = none %}"
    "{% macro m(x='mx', y=q) %}{{ x }}{{ y }}{% endmacro %}{% macro k() %}K{{ varargs|length }}{% endmacro %}"
    "{% macro c(x=0) %}[{{ caller(x) if x else caller() }}]{% endmacro %}"
)


def random_cases(seed, count, draw, context, longest=160):
    rng = random.Random(seed)
    seen, cases = set(), []
    while len(cases) < count:
        template = draw(rng)
        if template in seen or len(template) > longest:
            continue
        seen.add(template)
        made = case(template, context)
        if made is None or len(made.get("expected", "")) > 300:
            continue
        made.pop("context")
        made["error"] = True if "error" in made else None
        cases.append({key: value for key, value in made.items() if value is not None})
    return cases


def write(name, content):
    (HERE / name).write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace('},{"template"', '},\n{"template"').replace('},{"expected"', '},\n{"expected"') + "\n")


def main():
    groups = {}
    for name, expressions in (("expressions", EXPRESSIONS), ("filters", FILTERS), ("methods", METHODS)):
        groups[name] = [case("{{ " + text + " }}", CONTEXT) for text in expressions]
    groups["statements"] = [case(text, CONTEXT) for text in STATEMENTS]
    for name in groups:
        groups[name] = [made for made in groups[name] if made is not None]
        for made in groups[name]:
            made.pop("context")
    write("cases.json", {"context": CONTEXT, "groups": groups})
    write("chat.json", chat_cases())
    whitespace = random_cases(1, 1200, random_whitespace, {"e": "", "q": "Q"})
    expressions = random_cases(2, 1000, lambda rng: "{{ " + random_expression(rng) + " }}", CONTEXT)
    statements = random_cases(3, 200, random_statements, CONTEXT, longest=900)
    for made in statements:  # the prelude is the same for all; the test puts it back
        made["template"] = made["template"].removeprefix(STATEMENT_PRELUDE)
    write("random.json", {"prelude": STATEMENT_PRELUDE, "whitespace": whitespace, "expressions": expressions, "statements": statements})
    print({name: len(cases) for name, cases in groups.items()}, len(chat_cases()))


if __name__ == "__main__":
    main()
