import { strokesOf, strokeWidth } from "./letters.ts"
import type { Picture, Point, Shape } from "./Picture.ts"

/** Pixels row by row, red, green and blue. */
export interface Pixels {
  readonly wide: number
  readonly high: number
  readonly bytes: Uint8Array
}

/** A picture as pixels, `scale` of them for one of a screen's. Edges are as soft as they cover pixels in part. */
export const pixelsOf = (picture: Picture, scale: number): Pixels => {
  const wide = Math.round(picture.wide * scale)
  const high = Math.round(picture.high * scale)
  const bytes = new Uint8Array(wide * high * 3)
  const paper = rgb(picture.paper)
  for (let at = 0; at < bytes.length; at++) bytes[at] = paper[at % 3]
  const mask = makeMask(wide, high)
  const scaled = ({ x, y }: Point): Point => ({ x: x * scale, y: y * scale })
  const put = (shape: Shape): void => {
    switch (shape._tag) {
      case "Line":
        mask.stroke(shape.points.map(scaled), shape.width * scale)
        return mask.paint(bytes, rgb(shape.colour), 1)
      case "Dots":
        for (const point of shape.points) mask.stroke([scaled(point)], 2 * shape.radius * scale)
        return mask.paint(bytes, rgb(shape.colour), 1)
      case "Area":
        mask.fill(shape.points.map(scaled))
        return mask.paint(bytes, rgb(shape.colour), shape.opacity)
      case "Text": {
        const { width, strokes } = strokesOf(shape.words, shape.size)
        const left = shape.x - { start: 0, middle: width / 2, end: width }[shape.anchor]
        const move = ({ x, y }: Point): Point => scaled({ x: x + left, y: y + shape.y })
        for (const stroke of strokes) mask.stroke(stroke.map(move), shape.size * strokeWidth * scale)
        return mask.paint(bytes, rgb(shape.colour), 1)
      }
    }
  }
  for (const shape of picture.shapes) put(shape)
  return { wide, high, bytes }
}

type Colour = readonly [red: number, green: number, blue: number]

const rgb = (colour: string): Colour => {
  const value = Number.parseInt(colour.slice(1), 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}

/** Columns that an area is looked at in, for each of pixels. */
const columns = 4

/**
 * How much of each pixel a shape covers, from 0 to 1: a shape is put together here from its parts, so that where they
 * overlap nothing is painted twice.
 */
const makeMask = (wide: number, high: number) => {
  const covered = new Float32Array(wide * high)
  let [left, top, right, bottom] = [wide, high, 0, 0]
  /** The pixels of a box, as far as there are any; `paint` goes over those that were touched. */
  const touch = (x0: number, y0: number, x1: number, y1: number) => {
    const box = {
      x0: Math.max(0, Math.floor(x0)),
      y0: Math.max(0, Math.floor(y0)),
      x1: Math.min(wide, Math.ceil(x1)),
      y1: Math.min(high, Math.ceil(y1)),
    }
    left = Math.min(left, box.x0)
    top = Math.min(top, box.y0)
    right = Math.max(right, box.x1)
    bottom = Math.max(bottom, box.y1)
    return box
  }

  /** A piece of a line with round ends. */
  const piece = (from: Point, to: Point, radius: number): void => {
    const reach = radius + 1
    const { x0, y0, x1, y1 } = touch(
      Math.min(from.x, to.x) - reach,
      Math.min(from.y, to.y) - reach,
      Math.max(from.x, to.x) + reach,
      Math.max(from.y, to.y) + reach,
    )
    const [dx, dy] = [to.x - from.x, to.y - from.y]
    const length = dx * dx + dy * dy
    for (let y = y0; y < y1; y++) {
      for (let x = x0; x < x1; x++) {
        const [px, py] = [x + 0.5 - from.x, y + 0.5 - from.y]
        const along = length === 0 ? 0 : Math.min(1, Math.max(0, (px * dx + py * dy) / length))
        const distance = Math.hypot(px - along * dx, py - along * dy)
        const part = Math.min(1, radius + 0.5 - distance)
        const at = y * wide + x
        if (part > covered[at]) covered[at] = part
      }
    }
  }

  /** Covers a column's pixels between two heights. */
  const cover = (column: number, from: number, to: number): void => {
    const { x0, y0, x1, y1 } = touch(column, from, column + 1, to)
    for (let y = y0; y < y1 && x0 < x1; y++) {
      covered[y * wide + x0] += (Math.min(to, y + 1) - Math.max(from, y)) / columns
    }
  }

  return {
    stroke: (points: ReadonlyArray<Point>, width: number): void => {
      for (let index = 0; index < points.length; index++) {
        if (index > 0 || points.length === 1) piece(points[Math.max(0, index - 1)], points[index], width / 2)
      }
    },
    fill: (points: ReadonlyArray<Point>): void => {
      const crossings: Array<Array<number>> = Array.from({ length: wide * columns }, () => [])
      for (const [index, from] of points.entries()) {
        const to = points[(index + 1) % points.length]
        const [start, end] = from.x < to.x ? [from, to] : [to, from]
        const slope = (end.y - start.y) / (end.x - start.x)
        for (let at = Math.max(0, Math.ceil(start.x * columns - 0.5)); at < crossings.length; at++) {
          const x = (at + 0.5) / columns
          if (x >= end.x) break
          crossings[at].push(start.y + (x - start.x) * slope)
        }
      }
      for (const [at, heights] of crossings.entries()) {
        heights.sort((one, other) => one - other)
        for (let index = 0; index + 1 < heights.length; index += 2) {
          cover(Math.floor(at / columns), heights[index], heights[index + 1])
        }
      }
    },
    paint: (bytes: Uint8Array, colour: Colour, opacity: number): void => {
      for (let y = top; y < bottom; y++) {
        for (let x = left; x < right; x++) {
          const at = y * wide + x
          const part = Math.min(1, covered[at]) * opacity
          covered[at] = 0
          if (part === 0) continue
          for (let channel = 0; channel < 3; channel++) {
            const before = bytes[3 * at + channel]
            bytes[3 * at + channel] = Math.round(before + (colour[channel] - before) * part)
          }
        }
      }
      ;[left, top, right, bottom] = [wide, high, 0, 0]
    },
  }
}
