import type { NamedArrays } from "../Algorithm.ts"
import { type Filled, filledPart, restoreFilled } from "./storage.ts"

/**
 * Stores many observations of one size. They are bytes as long as all of their numbers are integers from 0 to 255 (as in
 * images and binary planes), and float32 from the first other number on. Bytes take a quarter of the memory and lose nothing.
 */
export class Frames {
  private data: Uint8Array | Float32Array
  private readonly width: number
  private readonly count: number

  constructor(count: number, width: number) {
    this.count = count
    this.width = width
    this.data = new Uint8Array(count * width)
  }

  write(frame: number, from: Float32Array, offset: number): void {
    const { width } = this
    const base = frame * width
    for (let at = 0; at < width; at++) {
      const value = from[offset + at]
      this.data[base + at] = value
      if (this.data[base + at] !== value && this.data instanceof Uint8Array) {
        this.data = Float32Array.from(this.data)
        this.data[base + at] = value
      }
    }
  }

  read(frame: number, into: Float32Array, offset: number): void {
    const { width, data } = this
    const base = frame * width
    for (let at = 0; at < width; at++) into[offset + at] = data[base + at]
  }

  state(name: string, filled: Filled): NamedArrays {
    return filledPart(name, this.data, this.width, filled)
  }

  restore(arrays: NamedArrays, name: string, filled: Filled): void {
    const isFloat = (arrays[name] ?? arrays[`${name}.0`])?.data instanceof Float32Array
    this.data = isFloat ? new Float32Array(this.count * this.width) : new Uint8Array(this.count * this.width)
    restoreFilled(arrays, name, this.data, this.width, filled)
  }
}
