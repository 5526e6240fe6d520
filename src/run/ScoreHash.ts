import * as SchemaGetter from "effect/SchemaGetter"
import * as Schema from "effect/Schema"

const bytes = new DataView(new ArrayBuffer(8))

/**
 * Hashes a sequence of scores, for the digest by which two runs are compared: the hashes are equal only if all scores are
 * equal bit for bit. Its whole state is two 32-bit words, which a checkpoint holds, so that a resumed run continues the hash.
 * It is not cryptographic; its constants are those of known hash functions.
 */
export class ScoreHash {
  private low: number
  private high: number

  constructor(words: readonly [number, number] = [0x811c9dc5, 0x9e3779b9]) {
    this.low = words[0]
    this.high = words[1]
  }

  /** The state of the hash, as two unsigned integers. */
  get words(): readonly [number, number] {
    return [this.low >>> 0, this.high >>> 0]
  }

  /** Adds one number to the sequence, by all 64 bits of its floating-point form. */
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

  /** The Schema that saves the hash as its two 32-bit words. */
  static readonly schema = Schema.Tuple([Schema.Int, Schema.Int]).pipe(
    Schema.decodeTo(Schema.instanceOf(ScoreHash), {
      decode: SchemaGetter.transform((words: readonly [number, number]) => new ScoreHash(words)),
      encode: SchemaGetter.transform((hash: ScoreHash): readonly [number, number] => hash.words),
    }),
  )
}
