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

static void survives_every_failing_allocation(qt *t)
{
    static const char source[] = "{% macro f(a) %}{{ a|upper }}{% endmacro %}{% for x in msgs %}"
                                 "{{ f(x.content) ~ x|tojson }}{% endfor %}{{ a|sort }}";
    qn_json *v = NULL;
    qn_err err = {0};
    QT_EQ(t, qn_json_parse(&v, values, strlen(values), 1 << 20, &err), QN_OK);
    const size_t live = qn_alloc_live();
    qn_code rc = QN_E_NOMEM;
    for (size_t i = 0; i < 2000 && rc != QN_OK; i++) {
        qn_buf b;
        qn_buf_init(&b, 1 << 20);
        qn_alloc_fail_after(i);
        rc = render(&b, source, v, &err);
        qn_alloc_fail_after(SIZE_MAX);
        QT_OKF(t, rc == QN_OK || rc == QN_E_NOMEM, "%zu: %s", i, err.msg);
        qn_buf_fini(&b);
        QT_EQ(t, qn_alloc_live(), live);
    }
    QT_EQ(t, rc, QN_OK);
    qn_json_free(v);
}

QT_MAIN(QT(renders_what_jinja2_renders), QT(refuses_with_a_line),
        QT(survives_every_failing_allocation))
