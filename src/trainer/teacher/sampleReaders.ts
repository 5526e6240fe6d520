/**
 * Opens the models that read samples in the trainer's process: teachers in folders, the base model with a run's own adapter,
 * and the base model whose hidden states critics read. The runs of a trainer share them, so each is in memory once.
 */
import { Effect, Option, RcMap, RcRef, type Scope } from "effect"
import type * as Lms from "../../agents/lm/Lms.ts"
import { Backend } from "../../tensor/backend/Backend.ts"
import { type BaseModel, openBaseModel } from "../baseModel.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { compileFeatures, compileScorer, type FeatureReader, type Scorer } from "./compileScorer.ts"
import { vocabularyProblem } from "./vocabularies.ts"

/** Something that is open until the scope closes of the last run that uses it. */
type Shared<A> = Effect.Effect<A, { readonly message: string }, Scope.Scope>

export interface SampleReaders {
  /** Opens the model in a folder, which needs the tokens of the trained model. */
  readonly ofFolder: (path: string) => Shared<Scorer>
  /** Opens the trained model, to which the weights of a run are passed. */
  readonly ofModel: Shared<Scorer>
  /** Opens the program that computes the features of contexts by the trained model. */
  readonly features: Shared<FeatureReader>
}

interface ReadersPlace {
  readonly base: BaseModel
  /** The folder that relative paths start from. */
  readonly baseDir: string
  readonly sizes: MultiRunConfig["trainer"]
}

/** Fails with a message. */
const refuse = (message: string) => Effect.fail({ message })

const openFolder = Effect.fnUntraced(function* ({ base, baseDir, sizes }: ReadersPlace, path: string) {
  const { decoder, weights, tokenizer } = yield* openBaseModel({ type: "folder", path }, { baseDir, seed: 0 })
  const problem = vocabularyProblem(base.tokenizer, tokenizer)
  if (problem !== undefined) return yield* refuse(`${path}: ${problem}`)
  if (decoder.maxPositions < sizes.width)
    return yield* refuse(
      `${path}: expected a teacher for at least ${sizes.width} tokens (trainer.width), found ${decoder.maxPositions}`,
    )
  return yield* compileScorer(sizes, { config: decoder, weights, adapters: null })
})

/**
 * Makes the readers of a trainer, of which each is opened when the first run needs it. Returns undefined without a backend,
 * with which nothing can be computed in this process.
 */
export const makeSampleReaders = Effect.fnUntraced(function* (
  place: ReadersPlace,
): Effect.fn.Return<SampleReaders | undefined, never, Lms.LmNeeds | Scope.Scope> {
  const backend = yield* Effect.serviceOption(Backend)
  if (Option.isNone(backend)) return undefined
  const { base, sizes } = place
  const adapters = sizes.lora === null ? null : { rank: sizes.lora.rank, targets: sizes.lora.targets }
  const trained = { config: base.decoder, weights: base.weights, adapters }
  const here = Effect.provideService(Backend, backend.value)
  const folders = yield* RcMap.make({ lookup: (path: string) => here(openFolder(place, path)) })
  const own = yield* RcRef.make({ acquire: here(compileScorer(sizes, trained)) })
  const features = yield* RcRef.make({ acquire: here(compileFeatures(sizes, trained)) })
  return {
    ofFolder: (path) =>
      RcMap.get(folders, path).pipe(
        // The map would keep the failure, but the folder may be right when the next run needs it.
        Effect.tapError(() => RcMap.invalidate(folders, path)),
      ),
    ofModel: RcRef.get(own),
    features: RcRef.get(features),
  }
})
