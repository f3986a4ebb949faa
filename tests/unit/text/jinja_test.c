/* SPDX-License-Identifier: Apache-2.0 */
/* jinja_test.c - templates and the texts that jinja2 gives for them. */
#include <string.h>

#include "base/alloc.h"
#include "qt.h"
#include "text/jinja.h"

static const char values[] =
    "{\"a\": [3, 1, 2], \"m\": {\"k\": \"v\", \"n\": null, \"b\": true}, \"s\": \"Hello wOrld\", "
    "\"u\": \"é中\", \"f\": 1.5, \"big\": 1e+20, \"msgs\": [{\"role\": \"user\", \"content\": "
    "\"hi\"}, {\"role\": \"assistant\", \"content\": \" yo \"}, {\"role\": \"user\", \"content\": "
    "\"x\"}]}";
static const struct {
    const char *source, *text;
} rendered[] = {
    {"{{ s }}", "Hello wOrld"},
    {"{{ a }} {{ m }} {{ f }} {{ big }} {{ none }} {{ true }}",
     "[3, 1, 2] {'k': 'v', 'n': None, 'b': True} 1.5 1e+20 None True"},
    {"{{ missing }}|{{ missing is defined }}", "|False"},
    {"{{ m|tojson }}", "{\"k\": \"v\", \"n\": null, \"b\": true}"},
    {"{{ m|tojson(indent=2) }}", "{\n  \"k\": \"v\",\n  \"n\": null,\n  \"b\": true\n}"},
    {"{{ u|tojson }}{{ u|length }}{{ u[1] }}", "\"é中\"2中"},
    {"{{ a|sort }}{{ a|sort(reverse=true) }}{{ a|max }}{{ a|min }}{{ a|sum }}",
     "[1, 2, 3][3, 2, 1]316"},
    {"{% for x in a %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
     "13,21,32"},
    {"{% for x in [] %}a{% else %}none{% endfor %}", "none"},
    {"  {% if true %}\n  y\n  {% endif %}\nz\n", "  y\nz"},
    {"a {%- if 1 -%} b {%- endif -%} c", "abc"},
    {"{# c #}\nx", "x"},
    {"{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
    {"{% set ns = namespace(x=0) %}{% for i in range(4) %}{% set ns.x = ns.x + i %}{% endfor %}{{ "
     "ns.x }}",
     "6"},
    {"{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, b=3) }}", "1-21-3"},
    {"{% macro w() %}<{{ caller() }}>{% endmacro %}{% call w() %}in{% endcall %}", "<in>"},
    {"{% filter upper %}abc{% endfilter %}", "ABC"},
    {"{% set x %}hi{% endset %}{{ x|upper }}", "HI"},
    {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 1 + 2 * 3 }}",
     "3 -4 2 3.5 1024 7"},
    {"{{ 'a' ~ 1 ~ none }}", "a1None"},
    {"{{ 1 < 2 < 3 }}{{ 'e' in 'hello' }}{{ 4 not in a }}", "TrueTrueTrue"},
    {"{{ 'x' if false }}|{{ 'x' if true else 'y' }}", "|x"},
    {"{{ s.split() }}{{ s.split('o', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}",
     "['Hello', 'wOrld']['Hell', ' wOrld']['a,b', 'c']"},
    {"{{ '  x '.strip() }}|{{ 'xxaxx'.lstrip('x') }}|{{ 'xxaxx'.rstrip('x') }}", "x|axx|xxa"},
    {"{{ s.startswith('He') }}{{ s.endswith('x') }}{{ s.upper() }}{{ s.lower() }}{{ s.title() }}{{ "
     "s.capitalize() }}",
     "TrueFalseHELLO WORLDhello worldHello WorldHello world"},
    {"{{ s|replace('l', 'L') }}{{ s.replace('l', '', 1) }}", "HeLLo wOrLdHelo wOrld"},
    {"{{ a[1:] }}{{ a[::-1] }}{{ s[1:4] }}{{ s[-3:] }}{{ a[-1] }}", "[1, 2][2, 1, 3]ellrld2"},
    {"{{ msgs|selectattr('role', 'equalto', 'user')|map(attribute='content')|join('/') }}", "hi/x"},
    {"{{ msgs|rejectattr('role', '==', 'user')|list|length }}", "1"},
    {"{{ m.items()|list }}{{ m.keys()|list }}{{ m.get('q', 'd') }}{{ m|items|list }}",
     "[('k', 'v'), ('n', None), ('b', True)]['k', 'n', 'b']d[('k', 'v'), ('n', None), ('b', "
     "True)]"},
    {"{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}", "k=v;n=None;b=True;"},
    {"{{ m|dictsort }}", "[('b', True), ('k', 'v'), ('n', None)]"},
    {"{{ missing|default('d') }}{{ ''|d('e', true) }}", "de"},
    {"{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% "
     "endif %}{{ i }}{% endfor %}",
     "013"},
    {"{{ 'a\\nb'|indent(2) }}|{{ 'a\\nb'|indent(2, true) }}", "a\n  b|  a\n  b"},
    {"{{ '%s=%d' % ('a', 3) }}{{ '%.2f' % 1.239 }}", "a=31.24"},
    {"{{ '{}-{}'.format(1, 'b') }}", "1-b"},
    {"{{ ['it\\'s', \"q\"] }}{{ ('a',) }}", "[\"it's\", 'q']('a',)"},
    {"{{ 3.0 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1e15 }} {{ 1e16 }}",
     "3.0 1e-05 0.30000000000000004 1000000000000000.0 1e+16"},
    {"{{ '3'|int + 1 }}{{ 'x'|int(7) }}{{ '2.5'|float }}{{ 2.567|round(1) }}{{ 7|string|length }}",
     "472.52.61"},
    {"{% with q = 3 %}{{ q }}{% endwith %}{{ q }}", "3"},
    {"{% for x in a if x > 1 %}{{ loop.length }}{{ x }}{% endfor %}", "2322"},
    {"{{ [1,1,2]|unique|list }}{{ [1,2,3]|batch(2)|list }}", "[1, 2][[1, 2], [3]]"},
    {"{{ msgs|groupby('role')|length }}{% for r, l in msgs|groupby('role') %}{{ r }}{{ l|length "
     "}}{% endfor %}",
     "2assistant1user2"},
    {"{{ '<a&\"' | e }}", "&lt;a&amp;&#34;"},
    {"{{ s|trim|title }}{{ s|wordcount }}{{ 'abc'|center(7) }}|", "Hello World2  abc  |"},
    {"{{ 'a b/c'|urlencode }}", "a%20b/c"},
    {"{{ 5 is odd }}{{ 4 is divisibleby 2 }}{{ s is string }}{{ m is mapping }}{{ a is iterable "
     "}}{{ f is number }}{{ none is none }}{{ missing is not defined }}",
     "TrueTrueTrueTrueTrueTrueTrueTrue"},
    {"{% for x in [1,[2,[3]]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% "
     "endif %}{% endfor %}",
     "1(2(3))"},
    {"{% set c = cycler('a','b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}", "aba"},
    {"{% set j = joiner('|') %}{% for x in a %}{{ j() }}{{ x }}{% endfor %}", "3|1|2"},
    {"{{ dict(a=1, b='x') }}", "{'a': 1, 'b': 'x'}"},
    {"{{ 'a-b'.partition('-') }}{{ 'prefix'.removeprefix('pre') }}{{ '7'.zfill(3) }}{{ "
     "'hello'.find('l') }}{{ 'hello'.count('l') }}",
     "('a', '-', 'b')fix00722"},
    {"{{ '12'.isdigit() }}{{ 'ab'.isalpha() }}{{ 'a\\nb'.splitlines() }}", "TrueTrue['a', 'b']"},
    {"{{ not a }}{{ a and 1 }}{{ none or 'z' }}", "False1z"},
    {"{% if false %}1{% elif a %}2{% else %}3{% endif %}", "2"},
    {"{% for m in msgs %}{{ loop.previtem.role if not loop.first }}{{ loop.cycle('x','y') }}{% "
     "endfor %}",
     "xuseryassistantx"},
    {"{{ [1,2]+[3] }}{{ 'ab' * 2 }}{{ [0] * 2 }}", "[1, 2, 3]abab[0, 0]"},
    {"{{ 'long text that is cut here'|truncate(12) }}", "long..."},
    {"{{ a|first }}{{ a|last }}{{ a|reverse|list }}{{ 'abc'|reverse }}{{ a|join(', ') }}",
     "32[2, 1, 3]cba3, 1, 2"},
    {"{{ ['a','B']|map('upper')|list }}{{ ['a','B']|sort }}", "['A', 'B']['a', 'B']"},
};
static const char *const refused[] = {"{{ missing.x }}",
                                      "{{ raise_exception('no way') }}",
                                      "{{ a.append(1) }}",
                                      "{{ 1 + 'a' }}",
                                      "{{ s|nofilter }}",
                                      "{% if %}",
                                      "{{ 1 ",
                                      "{% include 'x' %}",
                                      "{% for x in range(999999999) %}{% endfor %}",
                                      "{{ (1 }}"};

static qn_code render(qn_buf *out, const char *source, const qn_json *v, qn_err *err)
{
    qn_jinja *t = NULL;
    const qn_json *all[] = {v};
    const qn_jinja_input in = {.variables = all, .n_variables = 1};
    qn_code rc = qn_jinja_new(&t, source, strlen(source), err);
    if (rc == QN_OK) rc = qn_jinja_render(out, t, &in, err);
    qn_jinja_free(t);
    return rc;
}

static void renders_what_jinja2_renders(qt *t)
{
    qn_json *v = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_json_parse(&v, values, strlen(values), 1 << 20, &err), QN_OK);
    for (size_t i = 0; i < QT_LEN(rendered); i++) {
        qn_buf b;
        qn_buf_init(&b, 1 << 20);
        const qn_code rc = render(&b, rendered[i].source, v, &err);
        QT_OKF(t, rc == QN_OK, "%s: %s", rendered[i].source, err.msg);
        if (rc == QN_OK) QT_STR(t, qn_buf_text(&b), rendered[i].text);
        qn_buf_fini(&b);
    }
    qn_json_free(v);
}

static void refuses_with_a_line(qt *t)
{
    qn_json *v = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_json_parse(&v, values, strlen(values), 1 << 20, &err), QN_OK);
    for (size_t i = 0; i < QT_LEN(refused); i++) {
        qn_buf b;
        qn_buf_init(&b, 1 << 20);
        QT_OKF(t, render(&b, refused[i], v, &err) != QN_OK, "%s", refused[i]);
        QT_OKF(t, strstr(err.msg, "line 1") != NULL, "%s: %s", refused[i], err.msg);
        QT_EQ(t, b.len, 0);
        qn_buf_fini(&b);
    }
    qn_json_free(v);
}

/* Everything that allocates in its own way. */
static const char busy[] =
    "{% macro g() %}{{ caller(1) }}{% endmacro %}{% macro f(a, b=2) %}{{ a|upper }}{{ varargs }}{{ "
    "kwargs }}{% endmacro %}"
    "{% for x in msgs if x.role == 'user' %}{{ f(x.content, 1, 2, c=3) ~ x|tojson(indent=2) }}"
    "{{ loop.length }}{% endfor %}{{ a|sort }}{{ msgs|groupby('role')|length }}"
    "{{ a|map('string')|join(',') }}{{ msgs|selectattr('role')|list|length }}{{ m|dictsort }}"
    "{{ '%s %5d' % (s, 3) }}{{ '{:>{}}|{a}'.format(s, 20, a=1) }}{{ s.split('o') }}{{ s[::-1] }}"
    "{{ s|wordwrap(4) }}{{ m|pprint }}{{ '<a>'|e }}{{ s|safe + '<' }}{{ a|batch(2, 0)|list }}"
    "{% set n = namespace(c=1) %}{% set n.c = [1] + a %}{{ n }}{{ range(3) }}{{ m.items() }}"
    "{% set x | upper %}{{ s }}{% endset %}{{ x }}{{ dict(a=1) }}{{ a|unique|list }}{{ 1.5|round }}"
    "{% call(q) g() %}{% endcall %}";

static void survives_every_failing_allocation(qt *t)
{
    qn_json *v = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_json_parse(&v, values, strlen(values), 1 << 20, &err), QN_OK);
    const size_t live = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    size_t i = 0;
    for (; i < 20000 && rc == QN_E_NOMEM; i++) {
        qn_buf b;
        qn_buf_init(&b, 1 << 20);
        qn_alloc_fail_after(i);
        rc = render(&b, busy, v, &err);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OKF(t, rc == QN_E_NOMEM || b.len, "%zu: %s", i, err.msg);
        qn_buf_fini(&b);
        QT_EQ(t, qn_alloc_live(), live);
    }
    QT_OKF(t, rc == QN_OK, "%d %s", (int)rc, err.msg);
    QT_OKF(t, i > 50, "%zu", i);
    qn_json_free(v);
}

/* Each ends at a ceiling, by its code, whatever it is that grows. */
static void what_grows_ends_at_a_ceiling(qt *t)
{
    static const char *const hostile[] = {
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor "
        "%}",
        "{% set n = namespace(l=[1]) %}{% for i in range(99) %}{% set n.l = n.l + n.l %}{% endfor "
        "%}",
        "{{ 'x'.center(10**9) }}",
        "{{ 'x' * 10**12 }}",
        "{{ [1] * 10**12 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ ('a' * 10**6).replace('', 'b' * 10**6) }}",
        "{{ ('ab' * 10**6)|replace('a', 'x' * 10**3)|length }}",
        "{{ ([[0] * 10**4] * 10**4)|tojson }}",
        "{{ [1]|tojson(indent=10**9) }}",
        "{{ ([0] * 10**6)|batch(10**9, 1)|list }}",
        "{{ [0]|slice(10**9)|list }}",
        "{{ ('a b ' * 10**6)|wordwrap(1)|wordwrap(1)|wordwrap(1)|wordwrap(1)|length }}",
        "{{ 'a'|indent(10**9, true) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{% set n = namespace(l=[]) %}{% for i in range(4000) %}{% set n.l = [n.l] %}{% endfor %}"
        "{{ n.l }}",
        "{% set n = namespace(l=[]) %}{% for i in range(4000) %}{% set n.l = [n.l] %}{% endfor %}"
        "{{ n.l|tojson(indent=2) }}",
        "{% set n = namespace(l=[]) %}{% for i in range(4000) %}{% set n.l = n.l|map('list') %}"
        "{% endfor %}{{ n.l|list }}",
        "{% set n = namespace(d={}) %}{% for i in range(99999) %}{% for j in range(99999) %}"
        "{% set n.d = dict(n.d, **{i ~ '_' ~ j: 1}) %}{% endfor %}{% endfor %}",
        "{% set k = 'a' * 10**5 %}{% for i in range(99999) %}"
        "{{ (k * 20).rfind(k ~ 'b' ~ k) }}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ s|upper }}{% endfor %}{% endfor "
        "%}",
        "{% set k = 'a' * 10**6 %}{% for i in range(200) %}{% set x = k|upper %}{% endfor %}",
        "{% set k = ' ' * 10**6 %}{% for i in range(200) %}{% set x = k|trim %}{% endfor %}",
        "{% set k = 'a' * 10**6 %}{% for i in range(200) %}{% set x = k|wordcount %}{% endfor %}",
        "{% set k = 'a' * 10**6 %}{% for i in range(200) %}{% set x = k.isalpha() %}{% endfor %}",
        "{% set k = 'a' * 10**6 %}{% for i in range(200) %}{% set x = k.split() %}{% endfor %}",
        "{% set k = 'a' * 10**6 %}{% for i in range(200) %}{% set x = k.splitlines() %}{% endfor "
        "%}",
    };
    qn_json *v = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_json_parse(&v, values, strlen(values), 1 << 20, &err), QN_OK);
    for (size_t i = 0; i < QT_LEN(hostile); i++) {
        qn_buf b;
        qn_buf_init(&b, (size_t)1 << 30);
        const qn_code rc = render(&b, hostile[i], v, &err);
        QT_OKF(t, rc == QN_E_LIMIT, "%s: %d %s", hostile[i], (int)rc, err.msg);
        QT_EQ(t, b.len, 0);
        qn_buf_fini(&b);
    }
    qn_json_free(v);
}

/* A template of nothing but different names, or blocks, ends early too. */
static void a_source_of_names_ends_at_a_ceiling(qt *t)
{
    static const char *const parts[] = {"{%% set a%zu=1 %%}", "{%% block b%zu %%}{%% endblock %%}"};
    for (size_t k = 0; k < QT_LEN(parts); k++) {
        qn_buf source, b;
        qn_err err = {0};
        qn_json *v = qn_json_new_object();
        qn_buf_init(&source, 4 << 20);
        qn_buf_init(&b, 1 << 20);
        for (size_t i = 0; i < 120000; i++)
            if (qn_buf_printf(&source, NULL,
                              k ? "{%% block b%zu %%}{%% endblock %%}" : "{%% set a%zu=1 %%}",
                              i) != QN_OK)
                break;
        const qn_code rc = render(&b, qn_buf_text(&source), v, &err);
        QT_OKF(t, rc == QN_E_LIMIT, "%s: %d %s", parts[k], (int)rc, err.msg);
        qn_json_free(v);
        qn_buf_fini(&source);
        qn_buf_fini(&b);
    }
}

/* Trees as deep as they are long end early, alone and inside each other; shorter ones are rendered. */
static void a_long_chain_ends_at_a_ceiling(qt *t)
{
    static const struct {
        const char *begin, *link, *end;
    } chain[] = {
        {"{{ a", ".b", " }}"},
        {"{{ a", "()", " }}"},
        {"{{ a", "[0]", " }}"},
        {"{{ a", "[:]", " }}"},
        {"{{ 1", "|abs", " }}"},
        {"{{ 1", "+1", " }}"},
        {"{{ 1", "*1", " }}"},
        {"{{ 1", "**1", " }}"},
        {"{{ 1", " and 1", " }}"},
        {"{{ 1", " or 1", " }}"},
        {"{{ 1", " if 1", " }}"},
        {"{% if 0 %}", "{% elif 0 %}", "{% endif %}"},
        {"{% filter upper", "|upper", " %}x{% endfilter %}"},
        {"{% for x in [] if 1", "+1", " %}{% endfor %}"},
        {"{{ ((1", "+1", "))|abs }}"},
    };
    const size_t lengths[] = {100, 100000};
    qn_json *v = qn_json_new_object();
    for (size_t i = 0; i < 2 * QT_LEN(chain); i++) {
        qn_buf source, b;
        qn_err err = {0};
        qn_buf_init(&source, 4 << 20);
        qn_buf_init(&b, 1 << 20);
        bool ok = qn_buf_printf(&source, NULL, "%s", chain[i / 2].begin) == QN_OK;
        for (size_t k = 0; ok && k < lengths[i % 2]; k++)
            ok = qn_buf_printf(&source, NULL, "%s", chain[i / 2].link) == QN_OK;
        ok = ok && qn_buf_printf(&source, NULL, "%s", chain[i / 2].end) == QN_OK;
        const qn_code rc = render(&b, qn_buf_text(&source), v, &err);
        QT_OKF(t, ok && (rc == QN_E_LIMIT) == (i % 2 == 1), "%s of %zu: %d %s", chain[i / 2].link,
               lengths[i % 2], (int)rc, err.msg);
        qn_buf_fini(&source);
        qn_buf_fini(&b);
    }
    qn_json_free(v);
}

/* Variables that nobody meant: deep, wide, empty, strange. A template meets them or refuses. */
static void strange_variables_are_met_or_refused(qt *t)
{
    static const char source[] = "{% for m in messages %}{{ m.role }}{{ m['content']|trim }}{{ "
                                 "m|tojson }}{{ m.x.y }}{% endfor %}"
                                 "{{ tools|length }}{{ messages|map(attribute='content')|join }}";
    static const char *const strange[] = {
        "{}",
        "{\"messages\": null}",
        "{\"messages\": 7}",
        "{\"messages\": \"text\"}",
        "{\"messages\": [[], {}, null, 1e308, \"x\"]}",
        "{\"messages\": {\"role\": 1}}",
        "{\"messages\": [{\"role\": {\"a\": []}, \"content\": [[[[]]]]}]}",
        "{\"loop\": 1, \"self\": 2, \"range\": 3, \"messages\": []}",
        "{\"\": 1, \"messages\": [{\"\": \"\", \"items\": 1, \"role\": \"\\u0000\"}]}",
        "{\"messages\": [{\"role\": 9223372036854775807, \"content\": -0.0}]}",
    };
    for (size_t i = 0; i < QT_LEN(strange); i++) {
        qn_json *v = NULL;
        qn_buf b;
        qn_err err = {0};
        qn_buf_init(&b, 1 << 20);
        QT_EQ(t, qn_json_parse(&v, strange[i], strlen(strange[i]), 1 << 20, &err), QN_OK);
        const qn_code rc = render(&b, source, v, &err);
        QT_OKF(t, rc == QN_OK || (rc == QN_E_FORMAT && strstr(err.msg, "line 1")), "%s: %d %s",
               strange[i], (int)rc, err.msg);
        qn_buf_fini(&b);
        qn_json_free(v);
    }
}

QT_MAIN(QT(renders_what_jinja2_renders), QT(refuses_with_a_line),
        QT(survives_every_failing_allocation), QT(what_grows_ends_at_a_ceiling),
        QT(a_source_of_names_ends_at_a_ceiling), QT(a_long_chain_ends_at_a_ceiling),
        QT(strange_variables_are_met_or_refused))
