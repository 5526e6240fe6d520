/** The rows of a rollout whose episode was truncated, with what their value is bootstrapped from. */
export class CutRows {
  count = 0
  rows: Int32Array
  /** Row after row: the final observation, then what was remembered. */
  contents: Float32Array
  private readonly width: number

  constructor(width: number, capacity: number) {
    this.width = width
    this.rows = new Int32Array(capacity)
    this.contents = new Float32Array(capacity * width)
  }

  clear(): void {
    this.count = 0
  }

  /** Keeps a copy of an observation, and of the memory where there is one. */
  add(
    row: number,
    observations: Float32Array,
    from: number,
    length: number,
    memory?: Float32Array,
    memoryFrom = 0,
  ): void {
    if (this.count === this.rows.length) this.grow()
    const { width, contents } = this
    const to = this.count * width
    for (let i = 0; i < length; i++) contents[to + i] = observations[from + i]
    if (memory !== undefined) for (let i = length; i < width; i++) contents[to + i] = memory[memoryFrom + i - length]
    this.rows[this.count++] = row
  }

  private grow(): void {
    const rows = new Int32Array(this.rows.length * 2)
    rows.set(this.rows)
    this.rows = rows
    const contents = new Float32Array(this.contents.length * 2)
    contents.set(this.contents)
    this.contents = contents
  }
}
