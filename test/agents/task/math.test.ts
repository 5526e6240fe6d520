import { assert, describe, it } from "@effect/vitest"
import { constantOf, equivalent } from "../../../src/agents/task/answers/expression.ts"
import { math, type Mode } from "../../../src/agents/task/answers/math.ts"

const check = (
  mode: Mode,
  rows: ReadonlyArray<readonly [string, string, 0 | 1]>,
  options: { readonly tolerance?: number; readonly expectBoxed?: boolean } = {},
) => {
  const score = math({ mode, tolerance: 1e-6, expectBoxed: false, ...options })
  for (const [answer, target, expected] of rows) {
    assert.strictEqual(score(answer, { targets: [target] }).score, expected, `${mode}: ${answer} | ${target}`)
  }
}

describe("mathematical answers", () => {
  it("numeric_tol: one number, as a number or an expression", () => {
    check("numeric_tol", [
      ["3.0000001", "3", 1],
      ["3.001", "3", 0],
      ["\\boxed{2\\sqrt{3}}", "3.4641016", 1],
      ["\\frac{\\pi}{2}", "1.5707963", 1],
      ["x = 5", "5", 1],
      ["It follows that x is 5.", "5", 1],
      ["$-\\frac{3}{4}$", "-0.75", 1],
      ["2^10", "1024", 1],
      ["1,024", "1024", 1],
      ["(1, 2)", "1", 0],
      ["none", "5", 0],
      ["", "5", 0],
    ])
    check("numeric_tol", [["3.2", "3", 1]], { tolerance: 0.25 })
  })

  it("tuple_tol: in their order, in any brackets or none", () => {
    check("tuple_tol", [
      ["(1, 2)", "(1,2)", 1],
      ["[1, 2]", "(1,2)", 1],
      ["1, 2", "(1,2)", 1],
      ["\\left(\\frac{1}{2}, \\sqrt{4}\\right)", "(0.5, 2)", 1],
      ["The point is (1, 2).", "(1, 2)", 1],
      ["\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "(1, 2)", 1],
      ["\\langle 1, 2 \\rangle", "(1, 2)", 1],
      ["(2, 1)", "(1, 2)", 0],
      ["(1, 2, 3)", "(1, 2)", 0],
      ["(1, 2.001)", "(1, 2)", 0],
      ["1", "(1, 2)", 0],
      ["(1, 2", "(1, 2)", 0],
    ])
  })

  it("set_tol: in any order, each once", () => {
    check("set_tol", [
      ["{2, 1}", "{1, 2}", 1],
      ["\\{2, 1\\}", "{1, 2}", 1],
      ["$\\left\\{1, 2\\right\\}$", "{2, 1}", 1],
      ["2, 1", "{1, 2}", 1],
      ["{1, 2, 2}", "{1, 2}", 1],
      ["{1/2, 1}", "{1, 0.5}", 1],
      ["So it is {1, 2}.", "{1, 2}", 1],
      ["\\emptyset", "{}", 1],
      ["{(1, 2), (3, 4)}", "{(3, 4), (1, 2)}", 1],
      ["{1}", "{1, 2}", 0],
      ["{1, 2, 3}", "{1, 2}", 0],
      ["{1, 2.1}", "{1, 2}", 0],
    ])
  })

  it("matrix_tol: row by row, as lists or in LaTeX", () => {
    check("matrix_tol", [
      ["[[1, 2], [3, 4]]", "[[1,2],[3,4]]", 1],
      ["\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "[[1,2],[3,4]]", 1],
      ["\\begin{bmatrix}1&2\\\\[2pt]3&\\frac{8}{2}\\\\\\end{bmatrix}", "[[1,2],[3,4]]", 1],
      ["Hence A = [[1, 2], [3, 4]]", "[[1,2],[3,4]]", 1],
      ["[[1, 3], [2, 4]]", "[[1,2],[3,4]]", 0],
      ["[[1, 2, 3, 4]]", "[[1,2],[3,4]]", 0],
      ["[[1, 2], [3]]", "[[1,2],[3,4]]", 0],
      ["[1, 2, 3, 4]", "[[1,2],[3,4]]", 0],
    ])
  })

  it("expr_equiv: the same function, in any form", () => {
    check("expr_equiv", [
      ["x^2 + 2x + 1", "(x+1)^2", 1],
      ["f(x) = (x-1)(x+1)", "x^2 - 1", 1],
      ["y = \\frac{x+1}{2}", "0.5x + 0.5", 1],
      ["\\sin^2 x + \\cos^2 x", "1", 1],
      ["2\\ln x", "\\log(x) + \\ln(x)", 1],
      ["e^{2x}", "\\exp(2x)", 1],
      ["\\sqrt[3]{8}x", "2*x", 1],
      ["x**2", "x^2", 1],
      ["n!/(n)", "(n-1)! n / n", 0],
      ["x_1 + x_2", "x_{2}+x_{1}", 1],
      ["\\alpha\\cdot\\beta", "\\beta \\alpha", 1],
      ["-x^2", "(-x)^2", 0],
      ["x + 1", "x - 1", 0],
      ["x", "y", 0],
      ["|x|", "x", 0],
      ["\\sqrt{x^2}", "x", 0],
      ["no idea", "x + 1", 0],
    ])
  })

  it("auto: by the form of the target, else the same text", () => {
    check("auto", [
      ["[[1, 2], [3, 4]]", "[[1,2],[3,4]]", 1],
      ["(1,2)", "(1, 2)", 1],
      ["(2,1)", "(1, 2)", 0],
      ["{2,1}", "{1, 2}", 1],
      ["{2,1}", "(1, 2)", 0],
      ["0.5", "1/2", 1],
      ["the answer is 12", "12", 1],
      ["(7)", "7", 1],
      ["Isosceles.", "isosceles", 1],
      ["act", "cat", 0],
      ["1 + x", "x + 1", 0],
      ["(0, 1]", "(0, 1]", 1],
      ["(0, 1)", "(0, 1]", 0],
    ])
  })

  it("are found among other words, unless a box is expected", () => {
    const rows = [
      ["so it is 12", "12"],
      ["the point (1, 2)", "(1, 2)"],
    ] as const
    for (const [answer, target] of rows) {
      check("auto", [[answer, target, 1]])
      check("auto", [[answer, target, 0]], { expectBoxed: true })
      check("auto", [[`so it is \\boxed{${target}}, not 99`, target, 1]], { expectBoxed: true })
      check("auto", [[target, target, 1]], { expectBoxed: true })
    }
    // The boxed text is the answer, even if another text would be right.
    check("auto", [
      ["12, so \\boxed{the twelfth}", "12", 0],
      ["so \\boxed{x is 12}, not 13", "12", 1],
    ])
  })

  it("say if there is nothing to compare", () => {
    const score = math({ mode: "auto", tolerance: 1e-6, expectBoxed: false })
    const message = (answer: string, target: string) => score(answer, { targets: [target] }).message
    assert.match(message("none", "[[1, 2], [3, 4]]"), /^Incorrect: there is no matrix in it\./)
    assert.match(message("none", "{1, 2}"), /^Incorrect: there is no set in it\./)
    assert.match(message("none", "(1, 2)"), /^Incorrect: there is no tuple in it\./)
    assert.match(message("none", "12"), /^Incorrect: there is no number in it\./)
    assert.match(message("13", "12"), /^Incorrect\. Your answer was: 13\. The answer is: 12$/)
    assert.strictEqual(score("{3}", { targets: ["{1}", "{3}"] }).target, "{3}")
  })
})

describe("expressions", () => {
  it("have a value if they have no variable", () => {
    const rows: ReadonlyArray<readonly [string, number | undefined]> = [
      ["1 + 2 * 3", 7],
      ["(1 + 2) * 3", 9],
      ["2^3^2", 512],
      ["-2^2", -4],
      ["2^-1", 0.5],
      ["6/2/3", 1],
      ["6/2(3)", 9],
      ["5!", 120],
      ["\\frac12", 0.5],
      ["2\\sqrt{9}", 6],
      ["\\sqrt{9}\\sqrt{4}", 6],
      ["\\log_2(8)", 3],
      ["\\log_{10} 1000", 3],
      ["\\sin(\\pi/6)", 0.5],
      ["\\cos 0", 1],
      ["\\sinh 1", Math.sinh(1)],
      ["cosh(0)", 1],
      ["tanh(2)", Math.tanh(2)],
      ["2 \\pi", 2 * Math.PI],
      ["3π", 3 * Math.PI],
      ["|3|", undefined],
      ["1/0", undefined],
      ["x", undefined],
      ["1 +", undefined],
      ["(1", undefined],
      ["", undefined],
    ]
    for (const [text, expected] of rows) {
      const value = constantOf(text)
      if (expected === undefined) assert.isUndefined(value, text)
      else assert.closeTo(value ?? Number.NaN, expected, 1e-12, text)
    }
  })

  it("take little time and stack, even if they are long", () => {
    for (const text of [
      "(".repeat(1_000),
      "-".repeat(1_000),
      "{".repeat(1_900),
      "1+".repeat(100_000),
      "^".repeat(500),
    ]) {
      assert.isUndefined(constantOf(text))
      assert.isFalse(equivalent(text, "x"))
    }
    const score = math({ mode: "auto", tolerance: 1e-6, expectBoxed: false })
    for (const open of ["(", "[", "{"]) {
      const nested = `${open}1,`.repeat(30_000)
      assert.strictEqual(score(nested, { targets: ["(1, 2)"] }).score, 0)
      const closed = `${"[".repeat(30_000)}1${"]".repeat(30_000)}`
      assert.strictEqual(score(closed, { targets: ["(1, 2)"] }).score, 0)
    }
  })
})
