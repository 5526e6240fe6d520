/** Makes the JSON Schema of a study's YAML file, for `effect tune`. schemas.ts writes it to schemas/study.schema.json. */
import { type Plain } from "../src/base/config/Config.ts"
import { jsonSchema } from "../src/base/config/jsonSchema.ts"
import { ParameterSettings, PrunerSettings, SamplerSettings, StudySettings } from "../src/command/tune/StudySettings.ts"
import { closed } from "./closed.ts"
import { meaningsOf } from "./meanings.ts"

const source = "src/command/tune/StudySettings.ts"

/** Returns the JSON Schema of the whole file. */
export const studySchema = (): Plain => {
  const part = (schema: Parameters<typeof jsonSchema>[0], name: string): Plain =>
    closed(jsonSchema(schema), { meanings: meaningsOf(source, name), required: [] })
  const anyPart = { anyOf: [{ $ref: "#/$defs/parameter" }, { $ref: "#/$defs/section" }] }
  const meanings = meaningsOf(source, "StudySettings")
  const settings = closed(jsonSchema(StudySettings), {
    meanings,
    required: ["parameters"],
    parts: {
      sampler: part(SamplerSettings, "SamplerSettings"),
      pruner: part(PrunerSettings, "PrunerSettings"),
      parameters: { type: "object", minProperties: 1, additionalProperties: anyPart },
    },
  })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A study of effect tune",
    ...settings,
    $defs: {
      parameter: part(ParameterSettings, "ParameterSettings"),
      section: { type: "object", minProperties: 1, additionalProperties: anyPart },
    },
  }
}
