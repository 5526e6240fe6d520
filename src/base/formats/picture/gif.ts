/**
 * Writes moving pictures as GIF files, which browsers, chats and READMEs show. A GIF has at most 256 colours, so
 * pictures with more get the nearest of those that fit all pictures best. Of each picture, only the part that changed
 * is saved.
 *
 * We do not use `gifenc`: it writes whole frames, so it could only replace the compression, which is 50 lines of this
 * file.
 */
import { ByteWriter } from "../ByteWriter.ts"
import type { Picture } from "./Picture.ts"

/** Counts the colours of pictures. Add all pictures before the first one is written. */
interface Colours {
  readonly add: (picture: Picture) => void
  /** Returns the colours of the file, and the function that finds the index of a colour among them. */
  readonly palette: () => Palette
}

interface Palette {
  /** The red, green and blue of each colour, in one array. */
  readonly rgb: Uint8Array
  readonly indexOf: (colour: number) => number
}

/** The largest number of colours. The 256th index is reserved: it means that a pixel does not change. */
const mostColours = 255
const unchanged = 255

/** Returns the colour of a pixel as one number. A transparent pixel shows white. */
const colourAt = (rgba: Uint8ClampedArray, at: number): number => {
  const alpha = rgba[at + 3]
  if (alpha === 255) return (rgba[at] << 16) | (rgba[at + 1] << 8) | rgba[at + 2]
  const over = (value: number): number => Math.round((value * alpha + 255 * (255 - alpha)) / 255)
  return (over(rgba[at]) << 16) | (over(rgba[at + 1]) << 8) | over(rgba[at + 2])
}

export const countColours = (): Colours => {
  const counts = new Map<number, number>()
  return {
    add: ({ rgba }) => {
      // Most pixels have the colour of the one before, so runs of them are counted at once.
      let [last, run] = [-1, 0]
      for (let at = 0; at < rgba.length; at += 4) {
        const colour = colourAt(rgba, at)
        if (colour !== last) {
          if (run > 0) counts.set(last, (counts.get(last) ?? 0) + run)
          ;[last, run] = [colour, 0]
        }
        run++
      }
      if (run > 0) counts.set(last, (counts.get(last) ?? 0) + run)
    },
    palette: () => {
      // Sort the colours, so that the file does not depend on the order in which pixels were counted.
      const all = [...counts].sort(([one], [other]) => one - other)
      const boxes = all.length <= mostColours ? all.map((one) => [one]) : split(all)
      const rgb = Uint8Array.from(boxes.flatMap(meanColour))
      const indices = new Map(boxes.flatMap((box, index) => box.map(([colour]) => [colour, index] as const)))
      return { rgb, indexOf: (colour) => indices.get(colour) ?? 0 }
    },
  }
}

type Counted = readonly [colour: number, count: number]

const channel = (colour: number, shift: number): number => (colour >> shift) & 255

/**
 * Splits colours into boxes of similar ones: repeatedly takes the box with the largest spread × weight^¼ and divides it
 * at its median.
 */
const split = (all: ReadonlyArray<Counted>): ReadonlyArray<ReadonlyArray<Counted>> => {
  const spreadOf = (box: ReadonlyArray<Counted>) => {
    const spreads = [16, 8, 0].map((shift) => {
      let [low, high] = [255, 0]
      for (const [colour] of box) {
        low = Math.min(low, channel(colour, shift))
        high = Math.max(high, channel(colour, shift))
      }
      return { shift, spread: high - low }
    })
    const widest = spreads.reduce((most, one) => (one.spread > most.spread ? one : most))
    const weight = box.reduce((sum, [, count]) => sum + count, 0)
    // Colours of many pixels matter more, but a rare colour, such as the agent's, must not vanish: hence the fourth
    // root.
    return { box, ...widest, worth: widest.spread * Math.sqrt(Math.sqrt(weight)) }
  }
  const boxes = [spreadOf(all)]
  while (boxes.length < mostColours) {
    const at = boxes.reduce((best, one, index) => (one.worth > boxes[best].worth ? index : best), 0)
    const { box, shift, spread } = boxes[at]
    if (spread === 0) break
    const sorted = box.toSorted(([one], [other]) => channel(one, shift) - channel(other, shift) || one - other)
    const half = sorted.reduce((sum, [, count]) => sum + count, 0) / 2
    let [sum, cut] = [0, 0]
    while (cut < sorted.length - 1 && (cut === 0 || sum < half)) sum += sorted[cut++][1]
    boxes.splice(at, 1, spreadOf(sorted.slice(0, cut)), spreadOf(sorted.slice(cut)))
  }
  return boxes.map(({ box }) => box)
}

const meanColour = (box: ReadonlyArray<Counted>): ReadonlyArray<number> => {
  const weight = box.reduce((sum, [, count]) => sum + count, 0)
  return [16, 8, 0].map((shift) =>
    Math.round(box.reduce((sum, [colour, count]) => sum + channel(colour, shift) * count, 0) / weight),
  )
}

/** Writes a GIF picture by picture. All have the same size. */
interface GifWriter {
  /** Adds a picture that is shown for this many hundredths of a second. */
  readonly add: (picture: Picture, hundredths: number) => void
  /** Returns the file. It repeats without end. */
  readonly finish: () => Uint8Array
}

/** Begins a GIF of this size, whose colours were counted. */
export const writeGif = (width: number, height: number, colours: Colours): GifWriter => {
  const to = new ByteWriter(2 ** 16)
  const { rgb, indexOf } = colours.palette()
  const short = (value: number): void => {
    to.byte(value & 255)
    to.byte(value >> 8)
  }
  to.text("GIF89a")
  short(width)
  short(height)
  // The flags of the header: a palette of 256 colours follows.
  to.piece(Uint8Array.of(0xf7, 0, 0))
  const table = new Uint8Array(768)
  table.set(rgb)
  to.piece(table)
  to.piece(Uint8Array.of(0x21, 0xff, 11))
  to.text("NETSCAPE2.0")
  to.piece(Uint8Array.of(3, 1, 0, 0, 0))

  const codes = new Uint16Array(4096 * 256)
  let before: Uint8Array | undefined
  return {
    add: ({ rgba }, hundredths) => {
      const pixels = new Uint8Array(width * height)
      let [last, index] = [-1, 0]
      for (let at = 0; at < pixels.length; at++) {
        const colour = colourAt(rgba, 4 * at)
        if (colour !== last) [last, index] = [colour, indexOf(colour)]
        pixels[at] = index
      }
      const { left, top, right, bottom } = changedPart(pixels, before, width)
      // The flags of a frame: keep the picture when the next one is drawn and, except in the first one, treat one
      // colour as transparent.
      to.piece(Uint8Array.of(0x21, 0xf9, 4, before === undefined ? 4 : 5))
      short(hundredths)
      to.piece(Uint8Array.of(unchanged, 0, 0x2c))
      for (const value of [left, top, right - left, bottom - top]) short(value)
      to.byte(0)
      const part = new Uint8Array((right - left) * (bottom - top))
      for (let row = top, at = 0; row < bottom; row++) {
        for (let column = left; column < right; column++, at++) {
          const from = row * width + column
          part[at] = before !== undefined && before[from] === pixels[from] ? unchanged : pixels[from]
        }
      }
      compress(part, to, codes)
      before = pixels
    },
    finish: () => {
      to.byte(0x3b)
      return to.written.slice()
    },
  }
}

/** Returns the smallest rectangle in which two pictures differ; one pixel if they are equal. */
const changedPart = (pixels: Uint8Array, before: Uint8Array | undefined, width: number) => {
  const height = pixels.length / width
  if (before === undefined) return { left: 0, top: 0, right: width, bottom: height }
  let [left, top, right, bottom] = [width, height, 0, 0]
  for (let row = 0, at = 0; row < height; row++) {
    for (let column = 0; column < width; column++, at++) {
      if (pixels[at] === before[at]) continue
      left = Math.min(left, column)
      right = Math.max(right, column + 1)
      top = Math.min(top, row)
      bottom = row + 1
    }
  }
  return right === 0 ? { left: 0, top: 0, right: 1, bottom: 1 } : { left, top, right, bottom }
}

/**
 * Writes pixels by GIF's variant of LZW, with eight bits per pixel, in blocks of at most 255 bytes. `codes` is the
 * table: at 256 times a run's code plus a pixel, it has the code of the run followed by that pixel, or 0.
 */
const compress = (pixels: Uint8Array, to: ByteWriter, codes: Uint16Array): void => {
  const [clear, end] = [256, 257]
  const block = new Uint8Array(255)
  let filled = 0
  const flush = (): void => {
    to.byte(filled)
    to.piece(block.subarray(0, filled))
    filled = 0
  }
  let [bits, count, size] = [0, 0, 9]
  const write = (code: number): void => {
    bits |= code << count
    for (count += size; count >= 8; count -= 8, bits >>>= 8) {
      block[filled++] = bits & 255
      if (filled === 255) flush()
    }
  }
  let next = end + 1
  const restart = (): void => {
    write(clear)
    codes.fill(0)
    next = end + 1
    size = 9
  }
  to.byte(8)
  restart()
  let run: number = pixels[0]
  for (let at = 1; at < pixels.length; at++) {
    const key = run * 256 + pixels[at]
    const longer = codes[key]
    if (longer !== 0) {
      run = longer
      continue
    }
    write(run)
    if (next === 4096) restart()
    else {
      if (next === 1 << size) size++
      codes[key] = next++
    }
    run = pixels[at]
  }
  write(run)
  // A reader adds a run to its table after this code, too. If the table is then full for the current code length, the
  // next code is longer.
  if (next === 1 << size && size < 12) size++
  write(end)
  if (count > 0) block[filled++] = bits & 255
  if (filled > 0) flush()
  to.byte(0)
}
