/**
 * Defines a turn of the training loop on one rank, and its encoding as bytes, by which the master sends it to another rank: a
 * safetensors file whose metadata lists the samples of each run.
 */
import { Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { naturalInt } from "../../base/config/fields.ts"
import * as Safetensors from "../../base/formats/safetensors.ts"
import { arrayNames, type MicroBatch } from "./MicroBatch.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import type { Share } from "./Packer.ts"

export interface Turn {
  /** The number of the turn, from 0. */
  readonly number: number
  /** The micro-batch of this rank. Its arrays are valid until the next turn. */
  readonly microBatch: MicroBatch
  /** The samples of each run in the micro-batches of all ranks. */
  readonly shares: ReadonlyArray<Share>
}

/**
 * Adds the samples of a turn to the progress of their runs. Returns the runs whose step is complete. Every rank calls it when
 * the turn's gradients are computed.
 */
export const countTurn = (
  slotAt: (index: number) => RunSlot | undefined,
  { shares }: Pick<Turn, "shares">,
): ReadonlyArray<RunSlot> =>
  shares.flatMap(({ index, id, samples, tokens, done }) => {
    const run = slotAt(index)
    if (run?.id !== id) return []
    run.progress.totalSamples += samples.length
    run.progress.totalTokens += tokens
    if (!done) return []
    run.progress.step++
    return [run]
  })

const Description = jsonText(
  Schema.Struct({
    number: naturalInt,
    rows: naturalInt,
    width: naturalInt,
    sequenceCount: naturalInt,
    shares: Schema.Array(
      Schema.Struct({
        index: naturalInt,
        id: Schema.String,
        step: naturalInt,
        samples: Schema.Array(Schema.String),
        tokens: naturalInt,
        done: Schema.Boolean,
      }),
    ),
  }),
)
const encode = Schema.encodeSync(Description)
const decode = Schema.decodeUnknownSync(Description)

/** Encodes the turn of a rank. A round without a turn is an empty array. */
export const encodeTurn = (turn: Turn | undefined): Uint8Array => {
  if (turn === undefined) return new Uint8Array(0)
  const { number, shares, microBatch } = turn
  const { rows, width, sequenceCount } = microBatch
  const arrays = arrayNames.map((name) => [name, { shape: [microBatch[name].length], data: microBatch[name] }] as const)
  return Safetensors.encode(Object.fromEntries(arrays), {
    turn: encode({ number, rows, width, sequenceCount, shares }),
  })
}

/** Decodes the bytes of `encodeTurn`. Throws for other bytes, which would be a bug, because only the master writes them. */
export const decodeTurn = (bytes: Uint8Array): Turn | undefined => {
  if (bytes.length === 0) return undefined
  const { number, shares, rows, width, sequenceCount } = decode(Safetensors.metadata(bytes).turn)
  const tensors = Safetensors.decode(bytes)
  const dataOf = <A extends Safetensors.TensorArray>(name: string, kind: new (length: number) => A): A => {
    const { data } = tensors[name]
    if (data instanceof kind) return data
    throw new TypeError(`${name}: expected ${kind.name}`)
  }
  const microBatch: MicroBatch = {
    rows,
    width,
    sequenceCount,
    tokens: dataOf("tokens", Int32Array),
    positions: dataOf("positions", Int32Array),
    contexts: dataOf("contexts", Int32Array),
    ends: dataOf("ends", Int32Array),
    sequences: dataOf("sequences", Int32Array),
    mask: dataOf("mask", Uint8Array),
    logprobs: dataOf("logprobs", Float32Array),
    advantages: dataOf("advantages", Float32Array),
    temperatures: dataOf("temperatures", Float32Array),
    weights: dataOf("weights", Float32Array),
    experts: dataOf("experts", Int32Array),
    loraNumTokens: dataOf("loraNumTokens", Int32Array),
  }
  return { number, microBatch, shares }
}
