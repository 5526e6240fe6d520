import { deflateSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { GifReader } from "omggif"
import { sideBySide, thinnedFrames } from "../../../../src/base/formats/picture/frames.ts"
import { drawFrame } from "../../../../src/base/formats/picture/tiles.ts"
import { countColours, writeGif } from "../../../../src/base/formats/picture/gif.ts"
import { gifOf, rawFrames, timesOf } from "../../../../src/base/formats/picture/movie.ts"
import type { Picture } from "../../../../src/base/formats/picture/Picture.ts"
import { decodePng } from "../../../../src/base/formats/picture/png.ts"
import { drawSvg } from "../../../../src/base/formats/picture/svg.ts"
import { CartPole } from "../../../../src/index.ts"

const svg = (parts: string, box = "0 0 8 8"): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}">${parts}</svg>`
const paper = `<rect width="8" height="8" fill="white"/>`

/** The red, green, blue and opacity of a pixel. */
const at = ({ width, rgba }: Picture, x: number, y: number): ReadonlyArray<number> =>
  Array.from(rgba.subarray(4 * (y * width + x), 4 * (y * width + x) + 4))

/** The sum of the covered shares of all pixels, for a document in black without paper: the area of its shapes. */
const areaOf = ({ rgba }: Picture): number =>
  rgba.reduce((sum, value, index) => sum + (index % 4 === 3 ? value / 255 : 0), 0)

describe("drawSvg", () => {
  it.effect("refuses comments without end in one pass", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(drawSvg(svg("<!-- >".repeat(500_000))))
      assert.include(message, "expected a tag such as")
    }),
  )

  it.effect("draws shapes where they are, and covers pixels by their share", () =>
    Effect.gen(function* () {
      const picture = yield* drawSvg(svg(`${paper}<rect x="2" y="1.5" width="3.25" height="2" fill="#ff0000"/>`))
      assert.deepStrictEqual(at(picture, 3, 2), [255, 0, 0, 255])
      assert.deepStrictEqual(at(picture, 3, 1), [255, 128, 128, 255])
      assert.deepStrictEqual(at(picture, 5, 2), [255, 191, 191, 255])
      assert.deepStrictEqual(at(picture, 6, 2), [255, 255, 255, 255])
    }),
  )

  it.effect("gives shapes their area", () =>
    Effect.gen(function* () {
      const box = "0 0 100 100"
      const areas = [
        [`<circle cx="50" cy="50" r="30"/>`, Math.PI * 900],
        [`<ellipse cx="50" cy="50" rx="30" ry="10"/>`, Math.PI * 300],
        [`<polygon points="10,10 90,10 10,90"/>`, 3200],
        [`<path d="M10 10 h80 l-80 80 z"/>`, 3200],
        [`<path d="M20,50 A30,30 0 1 1 80,50 A30,30 0 0 1 20,50Z"/>`, Math.PI * 900],
        [`<path d="M 10 50 Q 50 10 90 50 T 90 50 Z"/>`, (2 / 3) * 80 * 20],
        [`<path d="M10 10 H60 V60 H10 Z M20 20 h30 v30 h-30 z" fill-rule="evenodd"/>`, 1600],
        [`<path d="M10 10 H60 V60 H10 Z M20 20 h30 v30 h-30 z"/>`, 2500],
        [
          `<line x1="10" y1="50" x2="90" y2="50" stroke="black" stroke-width="10" stroke-linecap="round"/>`,
          800 + Math.PI * 25,
        ],
        [`<line x1="10" y1="10" x2="90" y2="90" stroke="black" stroke-width="10"/>`, 800 * Math.SQRT2],
        [
          `<polyline points="10,10 90,10 90,90" fill="none" stroke="black" stroke-width="4" stroke-linecap="square"/>`,
          640 + 16 - 4 + Math.PI,
        ],
        [`<g transform="translate(50 50) rotate(30) scale(2)"><rect x="-5" y="-5" width="10" height="10"/></g>`, 400],
        [`<rect x="10" y="10" width="40" height="40" rx="10"/>`, 1600 - 400 + Math.PI * 100],
        [`<g opacity="0.5"><rect width="10" height="10" fill-opacity="0.5"/></g>`, 25],
        [`<rect width="10" height="10" style="fill: none"/>`, 0],
        [`<path d="M20 50a30 30 0 1160 0a30,30,0,0,1-60 0Z"/>`, Math.PI * 900],
        [`<text x="5" y="50" visibility="hidden">hidden</text>`, 0],
        [`<g opacity="50%"><rect width="10" height="10" fill-opacity="50%"/></g>`, 25],
        [`<!-- <rect/> --><title>a &lt; b</title><g visibility="hidden"><rect width="9" height="9"/></g>`, 0],
      ] as const
      for (const [part, area] of areas) {
        assert.approximately(areaOf(yield* drawSvg(svg(part, box))), area, 0.004 * area + 0.5, part)
      }
    }),
  )

  it.effect("writes texts, whose width follows from their letters", () =>
    Effect.gen(function* () {
      const text = (anchor: string) =>
        drawSvg(
          svg(`<text x="110" y="20" font-size="10" text-anchor="${anchor}">x −1.5 m, 20° &amp; é</text>`, "0 0 220 40"),
        )
      /** The columns that have a dot. */
      const columns = ({ width, rgba }: Picture): ReadonlyArray<number> => {
        const dotted = new Set<number>()
        for (let pixel = 0; pixel < rgba.length / 4; pixel++) if (rgba[4 * pixel + 3] > 0) dotted.add(pixel % width)
        return [...dotted].sort((one, other) => one - other)
      }
      const start = columns(yield* text("start"))
      const middle = columns(yield* text("middle"))
      const end = columns(yield* text("end"))
      const letters = 17
      assert.deepStrictEqual(
        start,
        end.map((x) => x + letters * 6),
      )
      assert.deepStrictEqual(
        start,
        middle.map((x) => x + (letters / 2) * 6),
      )
      assert.isTrue(start[0] === 110 && start[start.length - 1] < 110 + letters * 6)
    }),
  )

  it.effect("goes on in a part of a text where the text is", () =>
    Effect.gen(function* () {
      const text = (content: string) =>
        Effect.map(
          drawSvg(svg(`<text x="20" y="20" font-size="10">${content}</text>`, "0 0 100 60")),
          ({ rgba }) => rgba,
        )
      const whole = yield* text("a bc")
      assert.deepStrictEqual(yield* text("<tspan>a bc</tspan>"), whole)
      assert.deepStrictEqual(yield* text("a <tspan>b</tspan>c"), whole)
      assert.deepStrictEqual(
        yield* text(`<tspan x="30" dy="9"> a</tspan><tspan x="20" y="11" dx="0" dy="9">a bc</tspan>`),
        yield* text(`<tspan x="30" y="29">a</tspan><tspan x="20" y="20">a bc</tspan>`),
      )
      assert.notDeepEqual(yield* text("<tspan>a</tspan>"), yield* text(`<tspan x="30" y="40">a</tspan>`))
    }),
  )

  it.effect("says what it cannot draw", () =>
    Effect.gen(function* () {
      for (const [text, message] of [
        [
          svg(`<foreignObject/>`),
          "SVG: <foreignObject> cannot be drawn; expected shapes, paths, groups, texts and PNG files",
        ],
        [svg(`<rect width="2" height="2" fill="url(#a)"/>`), `SVG: expected a colour such as #3d5a80, found "url(#a)"`],
        [svg(`<rect width="a" height="2"/>`), "SVG: width of rect: expected a number, found a"],
        [svg(`<g transform="skewX(3)"/>`), "SVG: expected translate, scale, rotate or matrix, found skewX"],
        [`<svg></svg>`, "SVG: expected a viewBox, or a width and a height in pixels, of at most 4096 × 4096"],
        [svg("", "0 0 9 4097"), "SVG: expected a viewBox, or a width and a height in pixels, of at most 4096 × 4096"],
        [svg(`<rect width="1em" height="2"/>`), "SVG: width of rect: expected a number, found 1em"],
        [svg(`<rect width="-1" height="2"/>`), "SVG: width of rect: expected a number of at least 0, found -1"],
        [
          svg(`<g stroke="red"><line x1="5" stroke-width="wide"/></g>`),
          "SVG: stroke-width of line: expected a number, found wide",
        ],
        [svg(`<g opacity="half"/>`), "SVG: opacity of g: expected a number or a percentage, found half"],
        [svg(`<text>&#x110000;</text>`), "SVG: expected a character, found &#x110000;"],
        [svg(`<g clip-path="url(#a)"/>`), "SVG: clip-path of g is not supported"],
        [svg(`<g style="filter: blur(2px)"/>`), "SVG: filter of g is not supported"],
        [svg(`<path stroke-dasharray="2 1"/>`), "SVG: stroke-dasharray of path is not supported"],
        [
          svg(`<rect width=2 height="2"/>`),
          `SVG: expected a tag such as <rect width="2"/>, found "<rect width=2 height=\\"2\\"/></svg>"`,
        ],
        [svg(`<g>`), "SVG: expected </g>, found </svg>"],
        [svg(`<polygon points="1 2 3"/>`), "SVG: points of polygon: expected x and y in turn, found 3 numbers"],
        [svg(`<polygon points="1 b"/>`), `SVG: points of polygon: expected numbers, found "1 b"`],
        [svg(`<g transform="rotate(45deg)"/>`), `SVG: rotate: expected numbers, found "45deg"`],
        [
          svg(`<g transform="translate(1) rotate"/>`),
          `SVG: expected a transform such as rotate(45), found "translate(1) rotate"`,
        ],
        [svg(`<path d="M 0 0 L 5 x"/>`), `SVG: expected a path, found " x" in d`],
        [svg(`<path d="M 0 0 A 5 5 0 2 1 9 9"/>`), `SVG: expected a path, found " 2 1 9 9" in d`],
        [svg(`<path d="M 0 0 L 5"/>`), "SVG: expected a path, found one that is cut off"],
        ["no picture", "SVG: expected a document that begins with <svg>, found another text"],
        [
          svg(`<image href="https://example.org/a.png"/>`),
          "SVG: expected an image of data:image/png;base64,…, found https://example.org/a.png",
        ],
        [svg(`<image href="data:image/png;base64,AAAA"/>`), "PNG: expected a PNG file, found other bytes"],
      ]) {
        assert.strictEqual((yield* Effect.flip(drawSvg(text))).message, message)
      }
    }),
  )
})

const chunk = (name: string, content: Uint8Array): Buffer => {
  const bytes = Buffer.alloc(12 + content.length)
  bytes.writeUInt32BE(content.length)
  bytes.write(name, 4, "latin1")
  bytes.set(content, 8)
  return bytes
}

/** A PNG file of rows that begin with their filter; without checksums, which are not read. */
const png = (
  width: number,
  height: number,
  depth: number,
  kind: number,
  rows: ReadonlyArray<number>,
  more: ReadonlyArray<Buffer> = [],
): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([depth, kind, 0, 0, 0], 8)
  return Buffer.concat([
    Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
    chunk("IHDR", header),
    ...more,
    chunk("IDAT", deflateSync(Uint8Array.from(rows))),
    chunk("IEND", Buffer.alloc(0)),
  ])
}

describe("decodePng", () => {
  it.effect("reads each kind of pixels and each filter", () =>
    Effect.gen(function* () {
      const pixels = function* (bytes: Buffer) {
        return Array.from((yield* decodePng(bytes)).rgba)
      }
      assert.deepStrictEqual(yield* pixels(png(2, 1, 8, 2, [0, 1, 2, 3, 4, 5, 6])), [1, 2, 3, 255, 4, 5, 6, 255])
      assert.deepStrictEqual(yield* pixels(png(2, 1, 8, 6, [1, 1, 2, 3, 4, 1, 1, 1, 1])), [1, 2, 3, 4, 2, 3, 4, 5])
      assert.deepStrictEqual(yield* pixels(png(1, 2, 8, 0, [0, 9, 2, 1])), [9, 9, 9, 255, 10, 10, 10, 255])
      assert.deepStrictEqual(yield* pixels(png(2, 1, 8, 4, [3, 8, 255, 4, 0])), [8, 8, 8, 255, 8, 8, 8, 127])
      assert.deepStrictEqual(
        yield* pixels(png(2, 2, 8, 0, [0, 10, 20, 4, 1, 2])),
        [10, 20, 11, 22].flatMap((grey) => [grey, grey, grey, 255]),
      )
      assert.deepStrictEqual(yield* pixels(png(2, 1, 1, 0, [0, 0b01000000])), [0, 0, 0, 255, 255, 255, 255, 255])
      assert.deepStrictEqual(yield* pixels(png(1, 1, 16, 0, [0, 7, 99])), [7, 7, 7, 255])
      const palette = [chunk("PLTE", Buffer.from([1, 2, 3, 4, 5, 6])), chunk("tRNS", Buffer.from([9]))]
      assert.deepStrictEqual(yield* pixels(png(2, 1, 4, 3, [0, 0x01], palette)), [1, 2, 3, 9, 4, 5, 6, 255])
    }),
  )

  it.effect("refuses damaged files", () =>
    Effect.gen(function* () {
      const whole = png(2, 2, 8, 0, [0, 10, 20, 0, 1, 2])
      // Half of it: reading on to the end would find that the rest is missing.
      const packed = deflateSync(new Uint8Array(2 ** 25))
      const half = chunk("IDAT", packed.subarray(0, packed.length / 2))
      const bomb = Buffer.concat([png(1, 1, 8, 0, []).subarray(0, 33), half])
      for (const [bytes, message] of [
        [png(2, 3, 8, 0, [0, 1, 2]), "PNG: its pixels are cut off"],
        [whole.subarray(0, 45), "PNG: its pixels are damaged"],
        [png(1, 1, 8, 0, [0, 1, 2]), "PNG: it has more pixels than its size, 1 × 1, says"],
        [bomb, "PNG: it has more pixels than its size, 1 × 1, says"],
        [png(1, 1, 3, 0, [0, 1]), "PNG: expected a known kind of colours, found kind 0 with 3 bits"],
      ] as const) {
        assert.strictEqual((yield* Effect.flip(decodePng(bytes))).message, message)
      }
    }),
  )
})

/** Reads GIF's codes of pixels up to their end, which has to be there in full, and returns the number of pixels. */
const pixelsIn = (blocks: Uint8Array): number => {
  const bytes: Array<number> = []
  let from = 1
  for (; blocks[from] > 0; from += 1 + blocks[from]) bytes.push(...blocks.subarray(from + 1, from + 1 + blocks[from]))
  assert.deepStrictEqual(Array.from(blocks.subarray(from)), [0, 0x3b])
  let [bit, size, pixels] = [0, 9, 0]
  /** The number of pixels of each code; those of clear and end are not used. */
  let lengths: Array<number> = []
  let before: number | undefined
  for (;;) {
    let code = 0
    for (let at = 0; at < size; at++, bit++) code |= ((bytes[bit >> 3] >> (bit & 7)) & 1) << at
    assert.isAtMost(bit, 8 * bytes.length)
    if (code === 257) return pixels
    if (code === 256) {
      lengths = Array.from({ length: 258 }, () => 1)
      ;[size, before] = [9, undefined]
      continue
    }
    if (before !== undefined && lengths.length < 4096) lengths.push(before + 1)
    if (lengths.length === 1 << size && size < 12) size++
    assert.isBelow(code, lengths.length)
    before = lengths[code]
    pixels += before
  }
}

const frame = (x: number): string => svg(`${paper}<rect x="${x}" width="2" height="2" fill="#204060"/>`)

describe("gifOf", () => {
  it.effect("writes what an independent reader reads, with times that sum up", () =>
    Effect.gen(function* () {
      const frames = Array.from({ length: 7 }, (_, index) => frame(index))
      const bytes = yield* gifOf([frames, frames.slice(0, 2)], 30)
      assert.deepStrictEqual(bytes, yield* gifOf([frames, frames.slice(0, 2)], 30))
      const reader = new GifReader(Buffer.from(bytes))
      assert.deepStrictEqual([reader.width, reader.height, reader.numFrames(), reader.loopCount()], [8, 8, 9, 0])
      const canvas = new Uint8ClampedArray(4 * 64)
      const shown = [...frames, ...frames.slice(0, 2)]
      let hundredths = 0
      for (const [index, document] of shown.entries()) {
        reader.decodeAndBlitFrameRGBA(index, canvas)
        assert.deepStrictEqual(canvas, (yield* drawSvg(document)).rgba)
        hundredths += reader.frameInfo(index).delay
      }
      assert.strictEqual(hundredths, 23 + 7 + 2 * 50)
    }),
  )

  it.effect(
    "keeps long runs and noise, whose codes grow to twelve bits",
    () =>
      Effect.gen(function* () {
        let seed = 1
        const next = (): number => (seed = (seed * 48271) % 2147483647)
        const noise = Array.from(
          { length: 90 * 90 },
          (_, at) =>
            `<rect x="${at % 90}" y="${Math.floor(at / 90)}" width="1" height="1" fill="rgb(${next() % 6},${(next() % 6) * 40},7)"/>`,
        )
        const documents = [
          svg(noise.join(""), "0 0 90 90"),
          svg(`<rect width="90" height="90" fill="red"/>`, "0 0 90 90"),
        ]
        const reader = new GifReader(Buffer.from(yield* gifOf([documents], 10)))
        const canvas = new Uint8ClampedArray(4 * 90 * 90)
        for (const [index, document] of documents.entries()) {
          reader.decodeAndBlitFrameRGBA(index, canvas)
          assert.deepStrictEqual(canvas, (yield* drawSvg(document)).rgba)
        }
      }),
    { tags: "slow" },
  )

  it("writes the end in as many bits as readers expect, however many pixels there are", { tags: "slow" }, () => {
    // No two neighbours repeat, so each pixel adds a code. With the last two lengths, the last code is the last one of
    // its size, and the bits before the end fill whole bytes, so that a bit that lacks is not among the zeros that follow.
    for (const length of [1, 2, 255, 256, 257, 8445, 19450]) {
      const greys = Array.from({ length }, (_, at) => (at % 2 === 0 ? (at / 2) % 101 : 101 + (((at - 1) / 2) % 103)))
      const rgba = Uint8ClampedArray.from(greys.flatMap((grey) => [grey, grey, grey, 255]))
      const picture = { width: length, height: 1, rgba }
      const colours = countColours()
      colours.add(picture)
      const gif = writeGif(length, 1, colours)
      gif.add(picture, 2)
      // The header, the palette, the block that says "repeat", the times and the rectangle of the picture.
      assert.strictEqual(pixelsIn(gif.finish().subarray(13 + 768 + 19 + 8 + 10)), length)
    }
  })

  it.effect("takes the nearest of 255 colours where there are more, and leaves pictures out above 50 a second", () =>
    Effect.gen(function* () {
      const shades = Array.from(
        { length: 1024 },
        (_, at) =>
          `<rect x="${at % 32}" y="${at >> 5}" width="1" height="1" fill="rgb(${at >> 2},${(at * 7) & 255},90)"/>`,
      )
      const document = svg(shades.join(""), "0 0 32 32")
      const reader = new GifReader(Buffer.from(yield* gifOf([[document]], 10)))
      const canvas = new Uint8ClampedArray(4 * 1024)
      reader.decodeAndBlitFrameRGBA(0, canvas)
      const exact = (yield* drawSvg(document)).rgba
      const largest = canvas.reduce((most, value, index) => Math.max(most, Math.abs(value - exact[index])), 0)
      assert.isTrue(largest > 0 && largest < 24, `${largest}`)
      assert.deepStrictEqual(timesOf([["a", "b", "c"]], 100), [
        { frame: "a", hundredths: 2 },
        { frame: "c", hundredths: 52 },
      ])
      // The end of an episode is never left out.
      assert.deepStrictEqual(timesOf([["a", "b", "c", "d"]], 100), [
        { frame: "a", hundredths: 2 },
        { frame: "c", hundredths: 2 },
        { frame: "d", hundredths: 52 },
      ])
    }),
  )

  it.effect("refuses pictures of different sizes, and none", () =>
    Effect.gen(function* () {
      const other = svg(paper, "0 0 9 9")
      assert.strictEqual(
        (yield* Effect.flip(gifOf([[frame(0), other]], 30))).message,
        "expected pictures of one size, 8 × 8, found one of 9 × 9",
      )
      assert.strictEqual((yield* Effect.flip(gifOf([], 30))).message, "expected pictures, found none")
    }),
  )
})

describe("videos of several episodes", () => {
  it.effect("have a tile for each, of which ended ones keep their last picture", () =>
    Effect.gen(function* () {
      const episodes = [[frame(0), frame(2), frame(4)], [frame(6)], [frame(1), frame(3)], []]
      const tiles = sideBySide(episodes)
      assert.deepStrictEqual(tiles, [
        [frame(0), frame(6), frame(1)],
        [frame(2), frame(6), frame(3)],
        [frame(4), frame(6), frame(3)],
      ])
      const picture = yield* drawFrame(tiles[2])
      assert.deepStrictEqual([picture.width, picture.height], [16, 16])
      for (const [index, document] of tiles[2].entries()) {
        const { rgba } = yield* drawSvg(document)
        for (let at = 0; at < 64; at++) {
          const [row, column] = [Math.floor(at / 8) + 8 * Math.floor(index / 2), (at % 8) + 8 * (index % 2)]
          const to = 4 * (row * 16 + column)
          assert.deepStrictEqual(picture.rgba.slice(to, to + 4), rgba.slice(4 * at, 4 * at + 4))
        }
      }
    }),
  )

  it.effect("have a longer side of a given size, whichever it is", () =>
    Effect.gen(function* () {
      const sizeOf = (document: string, side: number) =>
        Effect.map(drawFrame(document, side), ({ width, height }) => [width, height])
      assert.deepStrictEqual(yield* sizeOf(svg(paper, "0 0 40 10"), 20), [20, 5])
      assert.deepStrictEqual(
        yield* sizeOf('<svg xmlns="http://www.w3.org/2000/svg" width="30" height="90"></svg>', 9),
        [3, 9],
      )
      const tiled = yield* drawFrame([frame(0), frame(1)], 21)
      assert.deepStrictEqual([tiled.width, tiled.height], [20, 10])
      const gif = yield* gifOf([[[frame(0), frame(1)]]], 10, 32)
      const reader = new GifReader(Buffer.from(gif))
      assert.deepStrictEqual([reader.width, reader.height], [32, 16])
      const other = svg(paper, "0 0 9 9")
      assert.strictEqual(
        (yield* Effect.flip(drawFrame([frame(0), other]))).message,
        "expected tiles of one size, 8 × 8, found one of 9 × 9",
      )
    }),
  )

  it("have a bounded number of pictures, among them the last", () => {
    const numbers = Array.from({ length: 101 }, (_, index) => index)
    for (const most of [2, 7, 50, 100, 101, 500]) {
      const { frames, stride } = thinnedFrames(numbers, most)
      assert.isAtMost(frames.length, most)
      assert.strictEqual(frames.at(-1), 100)
      assert.isTrue(frames.slice(0, -1).every((number, index) => number === index * stride))
    }
    assert.deepStrictEqual(thinnedFrames([], 5), { frames: [], stride: 1 })
  })
})

it.effect("rawFrames streams the pixels of each picture", () =>
  Effect.gen(function* () {
    const { width, height, pixels } = yield* rawFrames({ frames: [frame(0), svg("")] })
    const [first, second] = yield* Stream.runCollect(pixels)
    assert.deepStrictEqual([width, height, first.length], [8, 8, 192])
    assert.deepStrictEqual(Array.from(first.subarray(0, 9)), [32, 64, 96, 32, 64, 96, 255, 255, 255])
    assert.isTrue(second.every((value) => value === 255))
  }),
)

it.effect("the pictures of built-in envs can be drawn", () =>
  Effect.gen(function* () {
    const { rgba } = yield* drawSvg(CartPole.env.renderSvg?.([0.5, 0, 0.1, 0]) ?? "")
    const colours = new Set(
      Array.from({ length: rgba.length / 4 }, (_, index) => rgba.subarray(4 * index, 4 * index + 3).join()),
    )
    // The paper, the pole and the cart.
    for (const colour of ["251,250,247", "238,108,77", "61,90,128"]) assert.isTrue(colours.has(colour), colour)
  }),
)
