import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { constantOf, equivalent } from "../src/agents/task/answers/expression.ts"
import { math, modes } from "../src/agents/task/answers/math.ts"
import { lastNumber, numberOf } from "../src/agents/task/answers/number.ts"
import { exact, f1, mcq, numeric } from "../src/agents/task/answers/score.ts"
import { boxed, normalise } from "../src/agents/task/answers/text.ts"

const anything = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.constantFrom("\\", "{", "}", "(", "[", ",", "1", ".", "-", "/", "^", "x", " ", '"', "*", "$") }),
  fc
    .array(fc.constantFrom("\\boxed{", "\\frac", "\\sqrt", "{", "}", "12", "1,000", "A", "the answer is ", "[[", "]]"))
    .map((parts) => parts.join("")),
)
const number = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }).map((value) => (value === 0 ? 0 : value)),
)

const grouped = (value: number): string => {
  const [whole, part] = String(Math.abs(value)).split(".")
  const groups = whole.replace(/\B(?=(\d{3})+$)/g, ",")
  return `${value < 0 ? "-" : ""}${groups}${part === undefined ? "" : `.${part}`}`
}

describe("scores of answers", () => {
  const scorers = [exact, f1, numeric, mcq, ...modes.map((mode) => math({ mode, tolerance: 1e-6, expectBoxed: false }))]

  it("are from 0 to 1 for any answer to any question, and name the target", () => {
    fc.assert(
      fc.property(anything, anything, fc.constantFrom(...scorers), (answer, target, score) => {
        const feedback = score(answer, { targets: [target] })
        assert.isTrue(feedback.score >= 0 && feedback.score <= 1)
        assert.isAbove(feedback.message.length, 0)
      }),
    )
  })

  it("are 1 for the target itself, boxed or not", () => {
    const word = fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8}){0,3}$/)
    fc.assert(
      fc.property(fc.oneof(word, number.map(String)), fc.constantFrom(...scorers), (target, score) => {
        assert.strictEqual(score(target, { targets: [target] }).score, 1)
        assert.strictEqual(score(`So it is \\boxed{${target}}.`, { targets: [target] }).score, 1)
      }),
    )
  })

  it("are the best over all targets", () => {
    fc.assert(
      fc.property(
        anything,
        fc.array(anything, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(exact, f1, numeric),
        (answer, targets, score) => {
          const each = targets.map((target) => score(answer, { targets: [target] }).score)
          assert.strictEqual(score(answer, { targets }).score, Math.max(...each))
        },
      ),
    )
  })

  it("by F1 are symmetric, independent of word order, and 1 only for the same words", () => {
    const word = fc.constantFrom("cat", "dog", "sat", "down", "Paris", "7")
    const some = fc.array(word, { minLength: 1, maxLength: 6 })
    const score = (a: ReadonlyArray<string>, b: ReadonlyArray<string>) =>
      f1(a.join(" "), { targets: [b.join(" ")] }).score
    fc.assert(
      fc.property(some, some, fc.infiniteStream(fc.nat()), (a, b, chance) => {
        assert.strictEqual(score(a, b), score(b, a))
        const shuffled = a
          .map((name) => ({ name, at: chance.next().value }))
          .toSorted((x, y) => x.at - y.at)
          .map(({ name }) => name)
        assert.strictEqual(score(shuffled, b), score(a, b))
        assert.strictEqual(score(a, b) === 1, a.toSorted().join() === b.toSorted().join())
        // A further word that is wrong makes it no better.
        assert.isAtMost(score([...a, "zebra"], b), score(a, b))
      }),
    )
  })
})

describe("numbers", () => {
  it("are read in groups, in LaTeX, in a box and at the end of a sentence", () => {
    fc.assert(
      fc.property(number, (value) => {
        for (const written of [String(value), `$${value}$`, `\\boxed{${value}}`, ` ${value} `, `**${value}**`]) {
          assert.strictEqual(numberOf(written), value, written)
        }
        assert.strictEqual(lastNumber(`Of 12 and 13 it is ${value}.`), value)
        if (!String(value).includes("e")) assert.strictEqual(numberOf(grouped(value)), value)
      }),
    )
  })

  it("written as fractions are quotients", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1 }), (above, below) => {
        for (const written of [`${above}/${below}`, `\\frac{${above}}{${below}}`, `\\dfrac{${above}}{${below}}`]) {
          assert.strictEqual(numberOf(written), above / below, written)
        }
      }),
    )
  })
})

describe("sets, tuples and matrices", () => {
  const score = math({ mode: "auto", tolerance: 1e-6, expectBoxed: false })
  const integers = fc.array(fc.integer({ min: -99, max: 99 }), { minLength: 2, maxLength: 6 })

  it("of numbers: a set equals any order, a tuple only its own", () => {
    fc.assert(
      fc.property(integers, (items) => {
        const turned = items.toReversed()
        assert.strictEqual(score(`\\{${turned.join(", ")}\\}`, { targets: [`{${items.join(",")}}`] }).score, 1)
        const same = turned.join() === items.join()
        assert.strictEqual(score(`(${turned.join(", ")})`, { targets: [`(${items.join(",")})`] }).score === 1, same)
        assert.strictEqual(score(`[${items.join("; ")}]`, { targets: [`(${items.join(",")})`] }).score, 1)
      }),
    )
  })

  it("of numbers: a matrix equals its list of rows and its LaTeX, not its transpose", () => {
    const square = fc.integer({ min: 2, max: 4 }).chain((size) =>
      fc.array(fc.array(fc.integer({ min: -9, max: 9 }), { minLength: size, maxLength: size }), {
        minLength: size,
        maxLength: size,
      }),
    )
    fc.assert(
      fc.property(square, (rows) => {
        const targets = [JSON.stringify(rows)]
        const latex = `\\begin{bmatrix} ${rows.map((row) => row.join(" & ")).join(" \\\\ ")} \\end{bmatrix}`
        assert.strictEqual(score(latex, { targets }).score, 1)
        const transposed = rows.map((_, at) => rows.map((row) => row[at]))
        const symmetric = JSON.stringify(transposed) === JSON.stringify(rows)
        assert.strictEqual(score(JSON.stringify(transposed), { targets }).score === 1, symmetric)
      }),
    )
  })
})

describe("expressions", () => {
  type Tree = { readonly text: string; readonly value: (x: number) => number }
  const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.integer({ min: 0, max: 20 }).map((value): Tree => ({ text: String(value), value: () => value })),
      fc.constant<Tree>({ text: "x", value: (x) => x }),
      fc.tuple(tie("tree"), tie("tree"), fc.constantFrom("+", "-", "*")).map(([a, b, sign]): Tree => ({
        text: `(${a.text} ${sign} ${b.text})`,
        value: (x) => {
          const [left, right] = [a.value(x), b.value(x)]
          return sign === "+" ? left + right : sign === "-" ? left - right : left * right
        },
      })),
      tie("tree").map((a): Tree => ({ text: `(${a.text})^2`, value: (x) => a.value(x) ** 2 })),
      tie("tree").map((a): Tree => ({ text: `-${a.text}`, value: (x) => -a.value(x) })),
    ),
  }))

  it("have the value that they were made with", () => {
    fc.assert(
      fc.property(tree, fc.integer({ min: 0, max: 9 }), ({ text, value }, x) => {
        const expected = value(x)
        const found = constantOf(text.replaceAll("x", `(${x})`))
        if (Number.isFinite(expected)) assert.strictEqual(found, expected, text)
      }),
    )
  })

  it("are equivalent to themselves and their expansion, not to themselves plus one", () => {
    fc.assert(
      fc.property(tree, tree, ({ text: a }, { text: b }) => {
        assert.isTrue(equivalent(a, a), a)
        assert.isTrue(equivalent(`${a} + ${b}`, `${b} + ${a}`))
        assert.isTrue(equivalent(`2(${a})`, `${a} + ${a}`))
        assert.isFalse(equivalent("x", `x + 1 + (x)^2`))
      }),
    )
  })

  it("and any other text are parsed without an error", () => {
    fc.assert(
      fc.property(anything, anything, (a, b) => {
        assert.isBoolean(equivalent(a, b))
        assert.strictEqual(equivalent(a, b), equivalent(b, a))
      }),
    )
  })
})

describe("texts", () => {
  it("have a normal form, which is stable", () => {
    fc.assert(
      fc.property(anything, (text) => {
        assert.strictEqual(normalise(normalise(text)), normalise(text))
      }),
    )
  })

  it("in a box are found, whatever braces they contain", () => {
    const { nested } = fc.letrec<{ nested: string }>((tie) => ({
      nested: fc.oneof(
        { maxDepth: 3 },
        fc.stringMatching(/^[a-z0-9+, ]{0,5}$/),
        fc.tuple(tie("nested"), tie("nested")).map(([a, b]) => `${a}{${b}}`),
        tie("nested").map((a) => `\\{${a}\\}`),
      ),
    }))
    fc.assert(
      fc.property(nested, anything, (inner, before) => {
        assert.strictEqual(boxed(`${before} \\boxed{${inner}} and so on`), inner.trim())
      }),
    )
  })
})
