import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Effect } from "effect"
import { curveColours, curvesCsv, curvesFigure, curveSvg } from "../../../src/rl/export/curveFiles.ts"
import { svgOf } from "../../../src/rl/export/drawing.ts"
import { pdfOf } from "../../../src/rl/export/pdf.ts"
import { decodePng, encodePng } from "../../../src/base/formats/picture/png.ts"
import { drawSvg } from "../../../src/base/formats/picture/svg.ts"
import { type Browser, chromium, launch } from "../../command/ui/chromium.ts"

const curve = Array.from({ length: 12 }, (_, index) => {
  const [value, spread] = [500 / (1 + Math.exp(5 - index)) - 20, 3 + 40 * Math.exp(-((index - 5) ** 2))]
  const [low, high] = [value - spread, value + spread]
  return { step: index * 20_000, runs: 5, mean: value, std: spread, median: value, iqm: value, low, high }
})

describe("a learning curve as SVG", () => {
  it("has a line and a band through all steps, and a dot per step", () => {
    const svg = curveSvg("zoo-CartPole-v1-ppo", curve)
    const sizes = [...svg.matchAll(/<poly(gon|line) points="([^"]+)"/g)].map(
      ([, kind, points]) => `${kind} ${points.split(" ").length}`,
    )
    assert.includeMembers(sizes, ["gon 24", "line 12"])
    assert.strictEqual(svg.split("<circle ").length - 1, 12)
  })

  it("draws a curve of one validation as a dot", () => {
    const svg = curveSvg("a", curve.slice(3, 4))
    assert.strictEqual(svg.split("<circle ").length - 1, 1)
    assert.notInclude(svg, "NaN")
  })

  it("escapes the title", () => {
    assert.include(curveSvg(`a<b>&"c"`, curve), ">a&#60;b&#62;&#38;&#34;c&#34;</text>")
  })
})

const several = ["ppo", 'a "2", c'].map((name, index) => ({
  name,
  curve: curve.slice(index).map((point) => ({ ...point, step: point.step * (index + 1) })),
}))

describe("a figure of several curves", () => {
  it("has a line, a band and a name for each, over one axis", () => {
    const { shapes } = curvesFigure("CartPole-v1", several, "env steps")
    const bands = shapes.filter((shape) => shape.kind === "area" && shape.opacity < 1)
    const lines = shapes.filter((shape) => shape.kind === "line" && shape.points.length > 2)
    assert.deepEqual(
      [...bands, ...lines].map(({ colour }) => colour),
      [...curveColours.slice(0, 2), ...curveColours.slice(0, 2)],
    )
    const ends = lines.map((line) => (line.kind === "line" ? line.points[line.points.length - 1].x : 0))
    assert.closeTo((ends[0] - 72) / (ends[1] - 72), 0.5, 1e-9)
    const texts = shapes.flatMap((shape) => (shape.kind === "text" ? [shape.content] : []))
    assert.includeMembers(texts, ["CartPole-v1", "ppo", 'a "2", c', "env steps", "0", "400"])
    assert.include(texts, "IQM of 5 runs each, with its 95 % interval")
  })

  it("says how many runs a curve has if they differ, and breaks a long legend into rows", () => {
    const fewer = several.map(({ name, curve }, index) => ({
      name: `${name} ${"with a long name".repeat(3)}`,
      curve: curve.map((point) => ({ ...point, runs: 5 - index })),
    }))
    const { shapes, height } = curvesFigure("a", fewer)
    const names = shapes.flatMap((shape) => (shape.kind === "text" && /\(\d\)$/.test(shape.content) ? [shape] : []))
    assert.deepEqual(
      names.map(({ content }) => content.slice(-3)),
      ["(5)", "(4)"],
    )
    assert.strictEqual(names[1].at.y - names[0].at.y, 20)
    assert.strictEqual(height, 460)
  })

  it("marks curves differently whose colours are the same", () => {
    const many = Array.from({ length: 7 }, (_, index) => ({ name: `curve ${index}`, curve }))
    const { shapes } = curvesFigure("a", many)
    const marks = shapes.filter((shape) => shape.kind === "area" && shape.opacity === 1)
    assert.lengthOf(marks, curve.length + 1)
    assert.isTrue(marks.every(({ colour }) => colour === curveColours[0]))
  })

  it("has colours that differ for colour-blind people", () => {
    // Machado, Oliveira and Fernandes (2009): how colours look without the first and without the second kind of cone.
    const protanopia = [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998]
    const deuteranopia = [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881]
    const linear = (colour: string) =>
      [1, 3, 5].map((at) => (Number.parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2)
    for (const matrix of [protanopia, deuteranopia]) {
      const seen = curveColours.map((colour) => {
        const rgb = linear(colour)
        return [0, 3, 6].map((row) => {
          const value = rgb.reduce((sum, one, at) => sum + matrix[row + at] * one, 0)
          return 255 * Math.max(0, value) ** (1 / 2.2)
        })
      })
      for (const [index, one] of seen.entries()) {
        for (const other of seen.slice(index + 1)) {
          assert.isAbove(Math.hypot(...one.map((value, at) => value - other[at])), 35)
        }
      }
    }
  })

  it("is a table with the names of the curves as CSV", () => {
    const lines = curvesCsv(several).split("\n")
    assert.strictEqual(lines[0], "curve,step,runs,mean,std,median,iqm,low,high")
    assert.match(lines[1], /^ppo,0,5,/)
    assert.match(lines[13], /^"a ""2"", c",40000,5,/)
    assert.strictEqual(curvesCsv(several.slice(0, 1)).split(",")[0], "step")
  })

  it("is a picture of its size as PNG", async () => {
    const svg = svgOf(curvesFigure("a", several))
    const drawn = await Effect.runPromise(drawSvg(svg))
    const read = await Effect.runPromise(Effect.flatMap(encodePng(drawn), decodePng))
    assert.deepEqual([read.width, read.height], [720, 440])
    assert.deepEqual(read.rgba, drawn.rgba)
    const dot = /<circle cx="([^"]+)" cy="([^"]+)"/.exec(svg.slice(svg.lastIndexOf("<g fill")))
    const [x, y] = [Number(dot?.[1]), Number(dot?.[2])].map(Math.floor)
    assert.deepEqual(Array.from(read.rgba.subarray(4 * (y * 720 + x), 4 * (y * 720 + x) + 3)), [0xd5, 0x5e, 0])
  })

  it("is a page with lines and Helvetica as PDF", () => {
    const text = Buffer.from(pdfOf(curvesFigure("−5 · ü 漢", several))).toString("latin1")
    assert.match(text, /^%PDF-1\.4\n/)
    assert.include(text, "/MediaBox [0 0 540 330]")
    // A minus is a dash, and letters that Helvetica lacks are question marks.
    assert.include(text, `<${Buffer.from("\x965 \xb7 \xfc ?", "latin1").toString("hex")}> Tj`)
    const starts = [...text.matchAll(/^(\d{10}) 00000 n $/gm)].map(([, start]) => Number(start))
    assert.deepEqual(
      starts.map((start) => text.slice(start, start + 7)),
      [1, 2, 3, 4, 5].map((index) => `${index} 0 obj`),
    )
    assert.strictEqual(text.slice(Number(/startxref\n(\d+)/.exec(text)?.[1])).slice(0, 4), "xref")
    const [, length, stream] = /Length (\d+) >>\nstream\n([^]*?)\nendstream/.exec(text) ?? []
    assert.strictEqual(stream.length, Number(length))
    assert.notInclude(text, "NaN")
  })
})

describe.skipIf(chromium === undefined)("a learning curve as SVG in a browser", { tags: "slow" }, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch(chromium ?? "")
  })
  afterAll(() => browser.close())

  it("is drawn in its colours", async () => {
    const svg = curveSvg("a title", curve)
    const [x, y] = [...svg.matchAll(/<circle cx="([^"]+)" cy="([^"]+)"/g)][5].slice(1).map(Number)
    const pixels = await browser.page.evaluate(`(async () => {
      const image = new Image()
      image.src = "data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}"
      await image.decode()
      const canvas = new OffscreenCanvas(720, 420)
      const context = canvas.getContext("2d")
      context.drawImage(image, 0, 0)
      const at = (x, y) => [...context.getImageData(Math.floor(x), Math.floor(y), 1, 1).data.slice(0, 3)].join(" ")
      return [image.width, image.height, at(5, 5), at(${x}, ${y})]
    })()`)
    assert.deepEqual(pixels, [720, 420, "251 250 247", "61 90 128"])
  })

  it("has all text inside the picture, also with a long title", async () => {
    const box = await browser.page.evaluate(`(() => {
      document.body.innerHTML = ${JSON.stringify(curveSvg("zoo-CartPole-v1-ppo-learning-rate=0.001-".repeat(5), curve))}
      const boxes = [...document.querySelectorAll("text")].map((element) => element.getBBox())
      return [Math.min(...boxes.map(({ x }) => x)) >= 0, Math.max(...boxes.map(({ x, width }) => x + width)) <= 720]
    })()`)
    assert.deepEqual(box, [true, true])
  })
})
