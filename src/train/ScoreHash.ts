const bytes = new DataView(new ArrayBuffer(8))

/**
 * A running 64-bit hash over numbers, exact to the bit, whose whole state is two words: so that a resumed run's digest
 * can go on where the checkpoint left it.
 */
export class ScoreHash {
  private low: number
  private high: number

  constructor(state: readonly [number, number] = [0x811c9dc5, 0x9e3779b9]) {
    this.low = state[0]
    this.high = state[1]
  }

  get state(): readonly [number, number] {
    return [this.low >>> 0, this.high >>> 0]
  }

  add(value: number): void {
    bytes.setFloat64(0, value)
    this.mix(bytes.getUint32(0))
    this.mix(bytes.getUint32(4))
  }

  private mix(word: number): void {
    this.low = Math.imul(this.low ^ word, 0x85ebca6b)
    this.low ^= this.low >>> 13
    this.high = Math.imul(this.high ^ word ^ this.low, 0xc2b2ae35)
    this.high ^= this.high >>> 16
  }
}
