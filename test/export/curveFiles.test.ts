import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { curveSvg } from "../../src/export/curveFiles.ts"
import { type Browser, chromium, launch } from "../dashboard/chromium.ts"

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
