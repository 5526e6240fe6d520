/**
 * Draws the first states of episodes for rollouts in the graph, ahead of time: a program cannot draw them, because each
 * episode has a random stream of its own. For each env there is a ring of states, from which the program takes the next
 * one at each reset. After a rollout, the states that it took are replaced by those of later episodes.
 */
import type { EnvGraph } from "../../env/EnvGraph.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"

interface StartsOptions {
  readonly graph: EnvGraph
  readonly numEnvs: number
  readonly steps: number
  readonly maxSteps: number
  readonly seed: number
}

/**
 * Returns how often an env can be reset in a rollout: its first episode may end at once, each later one has at least
 * `shortest` steps.
 */
export const mostResets = ({ graph, steps, maxSteps }: Pick<StartsOptions, "graph" | "steps" | "maxSteps">): number =>
  1 + Math.floor((steps - 1) / Math.min(graph.shortest, maxSteps))

export class Starts {
  /** The number of each env's current episode. */
  readonly episodes: Int32Array
  /** The number of states in the ring of each env. */
  readonly slots: number
  private readonly graph: EnvGraph
  /** The stream (seed, "env", i, "episode") of each env i, as in a batch that training resets: the episodes are the same. */
  private readonly parents: ReadonlyArray<Stream>

  constructor(options: StartsOptions) {
    const { graph, numEnvs, seed } = options
    this.graph = graph
    this.slots = mostResets(options)
    this.episodes = new Int32Array(numEnvs)
    this.parents = Array.from({ length: numEnvs }, (_, env) => stream(seed, "env", env, "episode"))
  }

  /** Returns the first states of the current episodes, one row for each env. */
  current(): Float32Array {
    const states = new Float32Array(this.episodes.length * this.graph.stateSize)
    for (let env = 0; env < this.episodes.length; env++) this.draw(states, env, env, this.episodes[env])
    return states
  }

  /** Returns the slot that each env takes next. */
  next(): Float32Array {
    return Float32Array.from(this.episodes, (episode) => (episode + 1) % this.slots)
  }

  /** Fills the rings [numEnvs · slots, stateSize] with the states of the episodes after the current ones. */
  fill(rings: Float32Array): void {
    for (let env = 0; env < this.episodes.length; env++)
      for (let ahead = 1; ahead <= this.slots; ahead++) this.put(rings, env, this.episodes[env] + ahead)
  }

  /** Begins the next episode of an env, whose state the program has taken, and refills its slot. */
  begin(rings: Float32Array, env: number): void {
    this.episodes[env]++
    this.put(rings, env, this.episodes[env] + this.slots)
  }

  private put(rings: Float32Array, env: number, episode: number): void {
    this.draw(rings, env * this.slots + (episode % this.slots), env, episode)
  }

  private draw(states: Float32Array, row: number, env: number, episode: number): void {
    this.graph.start(states, row * this.graph.stateSize, this.parents[env].child(episode))
  }
}
