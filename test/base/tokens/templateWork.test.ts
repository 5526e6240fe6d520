import { Environment, parse, tokenize } from "@huggingface/jinja"
import { assert, describe, it } from "@effect/vitest"
import { BoundedInterpreter } from "../../../src/base/tokens/templateWork.ts"

const budget = 20_000

/** Returns the text of a template, or the problem with it. */
const result = (source: string, work = budget): string => {
  const environment = new Environment()
  environment.set("range", (most: number) => Array.from({ length: most }, (_, index) => index))
  try {
    return String(new BoundedInterpreter(environment, work).run(parse(tokenize(source))).value)
  } catch (error) {
    return String(error)
  }
}

/** A list that holds the same list twice, and so on: it has few parts, and a text that doubles with each. */
const shared = (before: string, after: string) =>
  `{% set a = ['x', 'y'] %}${"{% set a = [a, a] %}".repeat(40)}${before}a${after}`
/** A text of 64 thousand characters, which costs a thousandth of the default budget to read. */
const long = `{% set a = 'aaaaaaaa' %}${"{% set a = a + a %}".repeat(13)}`
const often = (statement: string) => `${long}{% for i in range(100) %}${statement}{% endfor %}`

const expensive: ReadonlyArray<string> = [
  ...["tojson", "tojson(indent=2)", "string", "join", "join(',')"].map((one) => shared("{{ ", ` | ${one} }}`)),
  shared("{{ ", " }}"),
  shared("{{ 'x' ~ ", " }}"),
  shared("{{ 'x' + ", " }}"),
  shared("{{ 'x' == ", " }}"),
  shared("{% macro f() %}{{ ", " }}{% endmacro %}{{ f() }}"),
  shared("{% set b %}{{ ", " }}{% endset %}"),
  ...["upper", "lower", "title", "trim", "indent", "tojson", "replace('b', 'c')", "join('')"].map((one) =>
    often(`{% set b = a | ${one} %}`),
  ),
  ...["upper()", "strip()", "split('b')", "replace('b', 'c')", "split()"].map((one) => often(`{% set b = a.${one} %}`)),
  often("{% set f = a['replace'] %}{% set b = f('b', 'c') %}"),
  often("{% filter upper %}{{ a }}{% endfilter %}"),
  often("{% set b = a[::-1] %}"),
  often("{% set b = (a ~ i)[0] %}"),
  often("{% set b = (a ~ i).startswith('b') %}"),
  often("{% set b = { a ~ 1: 1, a ~ 2: 2 } %}"),
  often("{% set b = { 'a': 1 }[a ~ i] %}"),
  often("{% if ('b' + a) in a %}{% endif %}"),
  often("{% if a == a + 'b' %}{% endif %}"),
  often("{% if [a, a, a] | sort %}{% endif %}"),
  `${long}{{ a | replace('', a) }}`,
  `${long}{{ a | replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') }}`,
  `${long}{{ a.replace('a', a) }}`,
  `${long}{{ range(999) | join(a) }}`,
  `${long}{{ range(99) | tojson(separators=(a, a)) }}`,
  `${long}{{ range(99) | map(attribute=a) }}`,
  "{{ [[[[1]]]] | tojson(indent=99999999) }}",
  "{{ 'a\\na' | indent(99999999) }}",
  "{% set ns = namespace() %}{% set ns.a = [ns, ns] %}{{ ns | tojson }}",
  "{% for i in range(100) %}{% set b = range(1000) | reverse %}{% endfor %}",
  "{% for i in range(100) %}{% if 'a' in range(1000) %}{% endif %}{% endfor %}",
]

describe("the budget of a chat template", () => {
  for (const template of expensive) {
    const shown = template.replaceAll(/(?:\{% set a = (?:a \+ a|\[a, a\]) %\})+/g, "…")
    it(`ends before ${shown}`, () => {
      assert.match(result(template), /^Error: the template computes too much: more than 20000 expressions/)
    })
  }

  it("counts no text that is only passed on", () => {
    const many = (statement: string) => `${long}{% set m = [a, a] %}{% for i in range(99) %}${statement}{% endfor %}`
    for (const statement of [
      "{% set b = a %}",
      "{% if m[0] is string and m | length == 2 %}{% endif %}",
      "{% set ns = namespace(a='') %}{% set ns.a = ns.a + a ~ a %}",
      "{% set b = m + [a] %}{% set c = m[0:1] %}{% set d = m | first %}",
      "{% if m == none or m != m %}{% endif %}{% set ns = namespace(a=a) %}",
    ]) {
      assert.strictEqual(result(many(statement)), "", statement)
    }
    assert.strictEqual(result(`${long}{% macro f(x) %}.{% endmacro %}${"{{ f(a) }}".repeat(3)}`), "...")
  })

  it("leaves results as they are", () => {
    assert.strictEqual(result("{{ 'a-b' | replace('-', '+') }}{{ 'x' | upper }}{{ [1, 2] | tojson }}"), "a+bX[1, 2]")
    assert.strictEqual(result("{{ ['b', 'a'] | sort | join(',') }}{{ 'a b'.split()[1] }}{{ 'abc'[::-1] }}"), "a,bbcba")
  })
})
