/** Finds all numbers in the Schemas of all configs, for the tests of their bounds. */
import { type Schema, SchemaAST } from "effect"
import * as Evaluation from "../../scripts/evaluation.ts"
import * as Experiment from "../../scripts/experiment.ts"
import { PolicyConfig } from "../../src/rl/algorithms/agents/Separate.ts"
import { fromData, names, schemaOf } from "../../src/rl/algorithms/registry.ts"
import { GatewayConfig } from "../../src/agents/gateway/run/GatewayConfig.ts"
import { McpConfig } from "../../src/agents/agent/Mcp.ts"
import { boundKey } from "../../src/base/config/bounds.ts"
import { optionSchemas } from "../../src/rl/env/fromConfig.ts"
import { DecoderConfig } from "../../src/decoder/networks/DecoderConfig.ts"
import { MultiRunConfig } from "../../src/trainer/config/MultiRunConfig.ts"
import { OrchestratorConfig } from "../../src/trainer/config/OrchestratorConfig.ts"
import { PromptsSettings } from "../../src/agents/prompts/PromptsConfig.ts"
import { RunSettings } from "../../src/agents/training/RuntimeConfig.ts"
import { Settings } from "../../src/rl/train/Settings.ts"
import { TrainerConfig } from "../../src/rl/train/TrainerConfig.ts"
import {
  ParameterSettings,
  PrunerSettings,
  SamplerSettings,
  StudySettings,
} from "../../src/command/tune/StudySettings.ts"

/** A number in a config. */
export interface ConfigNumber {
  /** The name of the Schema and the keys to the number in it; `[]` is an item of a list, `*` is a key that the user chooses. */
  readonly path: ReadonlyArray<string>
  readonly ast: SchemaAST.AST
  /** The row of the table of bounds that the Schema names; undefined if it names none. */
  readonly bound: string | undefined
}

type AnySchema = Schema.Top

const named = (prefix: string, parts: ReadonlyArray<{ readonly type: string; readonly schema: AnySchema }>) =>
  parts.map(({ type, schema }): readonly [string, AnySchema] => [`${prefix} ${type}`, schema])

/** The Schemas of all configs, and of the parts that configs name, by what they are for. */
export const configSchemas = (): ReadonlyMap<string, AnySchema> =>
  new Map<string, AnySchema>([
    ["training", Settings],
    ["trainer block", TrainerConfig],
    ["multirun", MultiRunConfig],
    ["orchestrator", OrchestratorConfig],
    ["decoder", DecoderConfig],
    ["study", StudySettings],
    ["sampler", SamplerSettings],
    ["pruner", PrunerSettings],
    ["parameter", ParameterSettings],
    ["experiment", RunSettings],
    ["runtime", Experiment.run.runtime.schema],
    ["output", Experiment.run.output.schema],
    ["model", Experiment.model.schema],
    ["mcp", McpConfig],
    ["gateway", GatewayConfig],
    ["evaluation", Evaluation.evaluation.schema],
    ["prompts", PromptsSettings],
    ["policy", PolicyConfig],
    ...named("scorer", Evaluation.scorers()),
    ...named("agent", Experiment.agents()),
    ...named("memory", Experiment.memories()),
    ...named("data set", Experiment.datasets()),
    ...[...names, ...Object.keys(fromData)].map((name): [string, AnySchema] => [`algorithm ${name}`, schemaOf(name)]),
    ...Object.entries(optionSchemas).map(([name, schema]): [string, AnySchema] => [`env ${name}`, schema]),
  ])

const boundOf = (ast: SchemaAST.AST): string | undefined => {
  const named = [ast.annotations, ...(ast.checks ?? []).map(({ annotations }) => annotations)].map(
    (one) => one?.[boundKey],
  )
  // A later check narrows an earlier one.
  return named.findLast((name): name is string => typeof name === "string")
}

/** Returns all numbers of a Schema, as configs write them. */
export const numbersOf = (name: string, schema: Schema.Top): ReadonlyArray<ConfigNumber> => {
  const found: Array<ConfigNumber> = []
  const walk = (ast: SchemaAST.AST, path: ReadonlyArray<string>, above: ReadonlyArray<SchemaAST.AST>): void => {
    if (above.includes(ast)) return
    const inside = [...above, ast]
    if (SchemaAST.isUnion(ast)) ast.types.forEach((type) => walk(type, path, inside))
    else if (SchemaAST.isSuspend(ast)) walk(ast.thunk(), path, inside)
    else if (SchemaAST.isArrays(ast))
      [...ast.elements, ...ast.rest].forEach((type) => walk(type, [...path, "[]"], inside))
    else if (SchemaAST.isObjects(ast)) {
      ast.propertySignatures.forEach(({ name: key, type }) => walk(type, [...path, String(key)], inside))
      ast.indexSignatures.forEach(({ type }) => walk(type, [...path, "*"], inside))
    } else if (SchemaAST.isNumber(ast)) found.push({ path, ast, bound: boundOf(ast) })
  }
  walk(SchemaAST.toEncoded(schema.ast), [name], [])
  return found
}

/** Returns all numbers of all configs. */
export const configNumbers = (): ReadonlyArray<ConfigNumber> =>
  [...configSchemas()].flatMap(([name, schema]) => numbersOf(name, schema))
