import { describe, expectTypeOf, it } from "vitest"
import type {
  A2c,
  Bc,
  Curiosity,
  Daac,
  Dagger,
  Ddpg,
  Ddqn,
  Dqn,
  Es,
  Gail,
  Ppo,
  Randal,
  Rnd,
  Sac,
  Td3,
  Tqc,
  Unreal,
  Vin,
  LmConfig,
} from "../../src/index.ts"
import type * as RuntimeConfig from "../../src/agents/training/RuntimeConfig.ts"
import type { RuntimeInput } from "../../src/agents/training/Runtime.ts"
import type * as Settings from "../../src/rl/train/Settings.ts"
import type { TrainerConfig, TrainerOptions } from "../../src/rl/train/TrainerConfig.ts"

/** Compares types, so `tsc` runs these tests. */
describe("the interfaces of settings have the types of their Schemas", () => {
  it("for algorithms", () => {
    expectTypeOf<A2c.A2cOptions>().toEqualTypeOf<typeof A2c.A2cConfig.Encoded>()
    expectTypeOf<Bc.BcOptions>().toEqualTypeOf<typeof Bc.BcConfig.Encoded>()
    expectTypeOf<Curiosity.CuriosityOptions>().toEqualTypeOf<typeof Curiosity.CuriosityConfig.Encoded>()
    expectTypeOf<Daac.DaacOptions>().toEqualTypeOf<typeof Daac.DaacConfig.Encoded>()
    expectTypeOf<Dagger.DaggerOptions>().toEqualTypeOf<typeof Dagger.DaggerConfig.Encoded>()
    expectTypeOf<Ddpg.DdpgOptions>().toEqualTypeOf<typeof Ddpg.DdpgConfig.Encoded>()
    expectTypeOf<Ddqn.DdqnOptions>().toEqualTypeOf<typeof Ddqn.DdqnConfig.Encoded>()
    expectTypeOf<Dqn.DqnOptions>().toEqualTypeOf<typeof Dqn.DqnConfig.Encoded>()
    expectTypeOf<Es.EsOptions>().toEqualTypeOf<typeof Es.EsConfig.Encoded>()
    expectTypeOf<Gail.GailOptions>().toEqualTypeOf<typeof Gail.GailConfig.Encoded>()
    expectTypeOf<Ppo.PpoOptions>().toEqualTypeOf<typeof Ppo.PpoConfig.Encoded>()
    expectTypeOf<Randal.RandalOptions>().toEqualTypeOf<typeof Randal.RandalConfig.Encoded>()
    expectTypeOf<Rnd.RndOptions>().toEqualTypeOf<typeof Rnd.RndConfig.Encoded>()
    expectTypeOf<Sac.SacOptions>().toEqualTypeOf<typeof Sac.SacConfig.Encoded>()
    expectTypeOf<Td3.Td3Options>().toEqualTypeOf<typeof Td3.Td3Config.Encoded>()
    expectTypeOf<Tqc.TqcOptions>().toEqualTypeOf<typeof Tqc.TqcConfig.Encoded>()
    expectTypeOf<Unreal.UnrealOptions>().toEqualTypeOf<typeof Unreal.UnrealConfig.Encoded>()
    expectTypeOf<Vin.VinOptions>().toEqualTypeOf<typeof Vin.VinConfig.Encoded>()
  })

  it("for trainings, runs of language-model agents and models", () => {
    type InCode = "kind" | "env" | "algorithm" | "totalSteps" | "validation" | "callbacks"
    expectTypeOf<Omit<Settings.TrainInput, InCode | "trainer">>().toEqualTypeOf<
      Omit<typeof Settings.Settings.Encoded, InCode>
    >()
    expectTypeOf<Omit<Settings.ValidationOptions, "envs">>().toEqualTypeOf<
      Omit<typeof Settings.ValidationSettings.Encoded, "envs">
    >()
    expectTypeOf<Pick<RuntimeInput, "name" | "description" | "seed" | "start" | "runtime" | "output">>().toEqualTypeOf<
      Omit<typeof RuntimeConfig.RunSettings.Encoded, "kind">
    >()
    expectTypeOf<Settings.CheckpointOptions>().toEqualTypeOf<typeof Settings.CheckpointSettings.Encoded>()
    expectTypeOf<Settings.RenderOptions>().toEqualTypeOf<typeof Settings.RenderSettings.Encoded>()
    expectTypeOf<Settings.StartOptions>().toEqualTypeOf<typeof Settings.StartSettings.Encoded>()
    expectTypeOf<Settings.NormalizeOptions>().toEqualTypeOf<typeof Settings.NormalizeSettings.Encoded>()
    expectTypeOf<TrainerOptions>().toEqualTypeOf<typeof TrainerConfig.Encoded>()
    expectTypeOf<RuntimeConfig.RuntimeOptions>().toEqualTypeOf<typeof RuntimeConfig.RuntimeSettings.Encoded>()
    expectTypeOf<RuntimeConfig.OutputOptions>().toEqualTypeOf<typeof RuntimeConfig.OutputSettings.Encoded>()
    expectTypeOf<LmConfig.LmOptions>().toEqualTypeOf<typeof LmConfig.LmConfig.Encoded>()
  })
})
