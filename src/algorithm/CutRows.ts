/** The rows of a rollout whose episode was truncated, with the observation that the value is bootstrapped from. */
export class CutRows {
  count = 0
  rows: Int32Array
  observations: Float32Array
  private readonly width: number

  constructor(width: number, capacity: number) {
    this.width = width
    this.rows = new Int32Array(capacity)
    this.observations = new Float32Array(capacity * width)
  }

  clear(): void {
    this.count = 0
  }

  /** Keeps a copy of env `env`'s row of the final observations. */
  add(row: number, finalObservations: Float32Array, env: number): void {
    if (this.count === this.rows.length) this.grow()
    const { width } = this
    const to = this.count * width
    const from = env * width
    for (let i = 0; i < width; i++) this.observations[to + i] = finalObservations[from + i]
    this.rows[this.count++] = row
  }

  private grow(): void {
    const rows = new Int32Array(this.rows.length * 2)
    rows.set(this.rows)
    this.rows = rows
    const observations = new Float32Array(this.observations.length * 2)
    observations.set(this.observations)
    this.observations = observations
  }
}
