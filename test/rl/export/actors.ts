import { type ActorActivation, type DenseActor, type DenseLayer, exampleOf } from "../../../src/rl/export/DenseActor.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

/** Policies to write, with numbers drawn from a seed. */
const random = stream(21)
export const drawn = (length: number, scale = 1): Float32Array =>
  Float32Array.from({ length }, () => scale * random.normal())

/** Weights as large as they are in practice: what goes in and what comes out is of the same size. */
export const drawnLayer = (inputs: number, outputs: number, activation: ActorActivation): DenseLayer => ({
  weights: drawn(inputs * outputs, 1 / Math.sqrt(inputs)),
  biases: drawn(outputs, 0.5),
  activation,
})

export const activations = ["identity", "relu", "tanh", "sigmoid", "gelu", "silu", "softplus"] as const

/** Returns an actor like SAC's: normalised inputs, equal hidden layers, and means and deviations in one output. */
export const squashed: DenseActor = {
  inputs: 3,
  normalisation: { mean: drawn(3), deviation: Float32Array.of(0.5, 1, 3) },
  layers: [
    drawnLayer(3, 64, "relu"),
    drawnLayer(64, 64, "relu"),
    drawnLayer(64, 64, "relu"),
    drawnLayer(64, 4, "identity"),
  ],
  head: "sample_and_squash",
}

/** Hidden layers of two sizes. */
export const uneven: DenseActor = {
  inputs: 4,
  layers: [drawnLayer(4, 8, "tanh"), drawnLayer(8, 5, "tanh"), drawnLayer(5, 2, "identity")],
}

export const rowsFor = (actor: DenseActor, rows: number) => exampleOf(actor, drawn(rows * actor.inputs))
