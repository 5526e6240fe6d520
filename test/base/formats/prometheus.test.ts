import { assert, describe, it } from "vitest"
import { PrometheusHistogram, prometheusText } from "../../../src/base/formats/prometheus.ts"

describe("metrics for Prometheus", () => {
  it("have their help, their type and a line for each sample", () => {
    const text = prometheusText([
      {
        name: "runs",
        type: "gauge",
        help: "Runs\nby state, with a \\.",
        samples: [
          { labels: { state: "a", seed: "1" }, value: 1.5 },
          { labels: {}, value: NaN },
          { labels: { state: "b" }, value: -Infinity },
        ],
      },
      { name: "empty", type: "counter", help: "Nothing.", samples: [] },
    ])
    assert.strictEqual(
      text,
      '# HELP runs Runs\\nby state, with a \\\\.\n# TYPE runs gauge\nruns{state="a",seed="1"} 1.5\nruns NaN\nruns{state="b"} -Inf\n',
    )
  })

  it("escape the values of labels, and cut long ones", () => {
    const valueOf = (value: string): string =>
      /^x\{a="(.*)"\} 1$/m.exec(
        prometheusText([{ name: "x", type: "gauge", help: "", samples: [{ labels: { a: value }, value: 1 }] }]),
      )?.[1] ?? ""
    assert.strictEqual(valueOf('a "b" \\ c\nd\r\ud800'), 'a \\"b\\" \\\\ c\\nd \ufffd')
    assert.isBelow(valueOf("x".repeat(10_000)).length, 400)
    // Runs in deep folders may have paths that only differ at their ends.
    const deep = `results/${"x".repeat(300)}`
    assert.notStrictEqual(valueOf(`${deep}/0001`), valueOf(`${deep}/0002`))
    assert.strictEqual(valueOf(`${deep}/0001`), valueOf(`${deep}/0001`))
    assert.strictEqual(valueOf("x".repeat(300)), "x".repeat(300))
  })

  it("have a bounded number of samples", () => {
    const samples = Array.from({ length: 20_000 }, (_, index) => ({ labels: { a: String(index) }, value: index }))
    const lines = prometheusText([{ name: "x", type: "gauge", help: "", samples }])
      .trim()
      .split("\n")
    assert.lengthOf(lines, 10_002)
  })

  it("count the values of a histogram up to each bound", () => {
    const histogram = new PrometheusHistogram([1, 10])
    for (const value of [0.5, 1, 2, 100]) histogram.observe(value)
    assert.strictEqual(
      prometheusText([{ name: "x", type: "histogram", help: "", samples: histogram.samples({ a: "b" }) }]),
      '# HELP x \n# TYPE x histogram\nx_bucket{a="b",le="1"} 2\nx_bucket{a="b",le="10"} 3\nx_bucket{a="b",le="+Inf"} 4\nx_sum{a="b"} 103.5\nx_count{a="b"} 4\n',
    )
  })
})
