/** A list of vectors of one width in one array, which grows as needed and keeps its memory when it is cleared. */
export class GrowingRows {
  count = 0
  private contents: Float32Array
  private readonly width: number

  constructor(width: number, capacity: number) {
    this.width = width
    this.contents = new Float32Array(capacity * width)
  }

  clear(): void {
    this.count = 0
  }

  /** Appends a copy of the vector that begins at index `from`. */
  add(numbers: Float32Array, from: number): void {
    const { width } = this
    const to = this.count * width
    if (to + width > this.contents.length) {
      const larger = new Float32Array(Math.max(width, this.contents.length * 2))
      larger.set(this.contents)
      this.contents = larger
    }
    for (let i = 0; i < width; i++) this.contents[to + i] = numbers[from + i]
    this.count++
  }

  /** Copies `count` vectors, starting with vector `first`, to the beginning of `into`. */
  copy(first: number, count: number, into: { [index: number]: number }): void {
    const from = first * this.width
    for (let i = 0; i < count * this.width; i++) into[i] = this.contents[from + i]
  }
}
