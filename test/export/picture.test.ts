import { crc32, inflateSync } from "node:zlib"
import { Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { curvePicture } from "../../src/export/curveFiles.ts"
import { strokesOf } from "../../src/formats/picture/letters.ts"
import type { Picture, Shape } from "../../src/formats/picture/Picture.ts"
import { encodePng, pngOf } from "../../src/formats/picture/png.ts"
import { type Pixels, pixelsOf } from "../../src/formats/picture/raster.ts"
import { svgOf } from "../../src/formats/picture/svg.ts"
import { type Browser, chromium, launch } from "../dashboard/chromium.ts"

const curve = Array.from({ length: 12 }, (_, index) => {
  const [value, spread] = [500 / (1 + Math.exp(5 - index)) - 20, 3 + 40 * Math.exp(-((index - 5) ** 2))]
  const [low, high] = [value - spread, value + spread]
  return { step: index * 20_000, runs: 5, mean: value, std: spread, median: value, iqm: value, low, high }
})
const picture = curvePicture("zoo-CartPole-v1-ppo", curve)

const bytesOf = (make: Effect.Effect<Uint8Array>): Promise<Buffer> => Effect.runPromise(make).then(Buffer.from)

/** A PNG as the standard has it, by Node's own zlib; its rows are not filtered. */
const decoded = (file: Buffer): Pixels & { readonly chunks: ReadonlyArray<string> } => {
  assert.strictEqual(file.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n")
  const chunks = new Map<string, Buffer>()
  for (let at = 8; at < file.length;) {
    const end = at + 8 + file.readUInt32BE(at)
    assert.strictEqual(file.readUInt32BE(end), crc32(file.subarray(at + 4, end)))
    chunks.set(file.toString("latin1", at + 4, at + 8), file.subarray(at + 8, end))
    at = end + 4
  }
  const header = chunks.get("IHDR") ?? assert.fail("it has no header")
  assert.deepStrictEqual([...header.subarray(8)], [8, 2, 0, 0, 0])
  const [wide, high] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const rows = inflateSync(chunks.get("IDAT") ?? assert.fail("it has no pixels"))
  assert.strictEqual(rows.length, high * (1 + 3 * wide))
  const bytes = Buffer.concat(
    Array.from({ length: high }, (_, y) => {
      assert.strictEqual(rows[y * (1 + 3 * wide)], 0)
      return rows.subarray(y * (1 + 3 * wide) + 1, (y + 1) * (1 + 3 * wide))
    }),
  )
  return { wide, high, bytes: new Uint8Array(bytes), chunks: [...chunks.keys()] }
}

const at = ({ wide, bytes }: Pixels, x: number, y: number): ReadonlyArray<number> => [
  ...bytes.subarray(3 * (y * wide + x), 3 * (y * wide + x) + 3),
]

/** Millions of bytes are too many for an assertion that would say where they differ. */
const same = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0

const drawn = (...shapes: ReadonlyArray<Shape>): Picture => ({ wide: 40, high: 30, paper: "#ffffff", shapes })

describe("a picture as a PNG", () => {
  it("holds the very pixels, two for one of a screen's", async () => {
    const { chunks, ...found } = decoded(await bytesOf(pngOf(picture)))
    const { bytes, ...size } = pixelsOf(picture, 2)
    assert.deepStrictEqual([found.wide, found.high], [size.wide, size.high])
    assert.isTrue(same(found.bytes, bytes), "the pixels differ")
    assert.deepEqual([found.wide, found.high], [1440, 840])
    assert.deepStrictEqual(chunks, ["IHDR", "pHYs", "IDAT", "IEND"])
    const one = decoded(await bytesOf(encodePng({ wide: 1, high: 1, bytes: Uint8Array.of(1, 2, 3) }, 96)))
    assert.deepEqual([...one.bytes], [1, 2, 3])
  })
})

describe("pixels of a shape", () => {
  it("are its colour inside, the paper's outside, and in between where it covers them in part", () => {
    const square = [
      { x: 10, y: 10 },
      { x: 20.5, y: 10 },
      { x: 20.5, y: 20.25 },
      { x: 10, y: 20.25 },
    ]
    const area = pixelsOf(drawn({ _tag: "Area", points: square, colour: "#000000", opacity: 1 }), 1)
    assert.deepEqual(
      [
        [9, 15],
        [10, 15],
        [20, 15],
        [21, 15],
        [15, 20],
        [15, 21],
      ].map(([x, y]) => at(area, x, y)[0]),
      [255, 0, 128, 255, 191, 255],
    )
    const pale = pixelsOf(drawn({ _tag: "Area", points: square, colour: "#ff8000", opacity: 0.5 }), 1)
    assert.deepEqual(at(pale, 15, 15), [255, 192, 128])
  })

  it("are painted once, however often a line crosses itself, and never beside the picture", () => {
    const points = [-50, 90].flatMap((x) => [
      { x, y: 15 },
      { x: 90 - x, y: 15 },
    ])
    const line = pixelsOf(drawn({ _tag: "Line", points, width: 3, colour: "#204060" }), 2)
    assert.deepEqual(at(line, 0, 30), [0x20, 0x40, 0x60])
    assert.deepEqual(at(line, 79, 32), [0x20, 0x40, 0x60])
    assert.deepEqual(at(line, 40, 33), [255, 255, 255])
    const dot = pixelsOf(drawn({ _tag: "Dots", points: [{ x: 20, y: 15 }], radius: 5, colour: "#000000" }), 1)
    const dark = dot.bytes.reduce((sum, byte) => sum + (255 - byte) / 255 / 3, 0)
    assert.closeTo(dark, Math.PI * 25, 0.5)
  })
})

describe("letters", () => {
  it("are all of ASCII's and more, each another; one that is missing is a box", () => {
    const known = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).concat("–", "−", "±")
    const drawings = known.map((letter) => JSON.stringify(strokesOf(letter, 10)))
    assert.strictEqual(new Set(drawings).size, known.length)
    const box = JSON.stringify(strokesOf("漢", 10))
    assert.notInclude(drawings, box)
    for (const letter of known) {
      const { width, strokes } = strokesOf(letter, 10)
      for (const { x, y } of strokes.flat()) {
        assert.isTrue(x > -0.3 && x < width + 0.3 && y > -8.5 && y < 2.5, `${letter}: ${x}, ${y} of ${width}`)
      }
    }
    assert.deepEqual(strokesOf("é", 10), strokesOf("e", 10))
    assert.closeTo(strokesOf("mm", 20).width, 2 * strokesOf("mm", 10).width, 1e-9)
    assert.deepEqual(strokesOf("", 10), { width: 0, strokes: [] })
  })

  it("begin, end or have their middle where they are told to", () => {
    const reach = (anchor: "start" | "middle" | "end"): readonly [number, number] => {
      const text = { _tag: "Text", x: 20, y: 20, words: "HH", anchor, size: 10, colour: "#000000" } as const
      const pixels = pixelsOf(drawn(text), 1)
      const inked = Array.from({ length: 40 }, (_, x) => x).filter((x) => at(pixels, x, 16)[0] < 128)
      return [Math.min(...inked), Math.max(...inked)]
    }
    assert.closeTo(reach("start")[0], 20, 1)
    assert.closeTo(reach("end")[1], 20, 1)
    assert.closeTo((reach("middle")[0] + reach("middle")[1]) / 2, 19.5, 1)
  })

  it("are smaller where a title would not fit", () => {
    const [title] = curvePicture("m".repeat(200), curve).shapes
    assert.strictEqual(title._tag, "Text")
    assert.isAtMost(strokesOf("m".repeat(200), title._tag === "Text" ? title.size : 0).width, 673)
  })
})

describe.skipIf(chromium === undefined)("in a browser", () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch(chromium ?? "")
  })
  afterAll(() => browser.close())

  /** What a browser makes of an image's file, red, green and blue. */
  const shown = async (type: string, file: Buffer, wide: number, high: number): Promise<Uint8Array> => {
    const base64 = await browser.page.evaluate(`(async () => {
      const image = new Image()
      image.src = "data:${type};base64,${file.toString("base64")}"
      await image.decode()
      const canvas = new OffscreenCanvas(${wide}, ${high})
      const context = canvas.getContext("2d")
      context.drawImage(image, 0, 0, ${wide}, ${high})
      const pixels = context.getImageData(0, 0, ${wide}, ${high}).data
      let text = ""
      for (let at = 0; at < pixels.length; at++) if (at % 4 < 3) text += String.fromCharCode(pixels[at])
      return btoa(text)
    })()`)
    return new Uint8Array(Buffer.from(String(base64), "base64"))
  }

  it("the PNG is those pixels", async () => {
    const { wide, high, bytes } = pixelsOf(picture, 2)
    const theirs = await shown("image/png", await bytesOf(pngOf(picture)), wide, high)
    assert.isTrue(same(theirs, bytes), "the pixels differ")
  })

  it("the SVG looks the same, but for its letters", async () => {
    const plain = { ...picture, shapes: picture.shapes.filter(({ _tag }) => _tag !== "Text") }
    const { wide, high, bytes } = pixelsOf(plain, 2)
    const theirs = await shown("image/svg+xml", Buffer.from(svgOf(plain)), wide, high)
    const differences = bytes.map((byte, index) => Math.abs(byte - theirs[index]))
    assert.isAtMost(differences.filter((difference) => difference > 24).length / bytes.length, 2e-4)
    assert.isAtMost(differences.reduce((sum, one) => sum + one, 0) / bytes.length, 0.04)
    assert.isAbove(new Set(theirs).size, 50)
  })
})
