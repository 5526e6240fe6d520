import { assert, it } from "@effect/vitest"
import { Schema } from "effect"
import { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { episode, started, update, validation } from "./events.ts"

it.each([started, episode(), episode({ lastReward: 1 }), update(1, { "losses/entropy": 0.5 }), validation])(
  "$_tag is an event, and comes back from JSON",
  (event) => {
    const decode = Schema.decodeUnknownSync(Schema.fromJsonString(RunEvent))
    assert.deepEqual(decode(JSON.stringify(event)), event)
  },
)

it("other things are not", () => {
  const decode = Schema.decodeUnknownSync(RunEvent)
  for (const wrong of [{ _tag: "Nothing" }, { _tag: "Note" }, { ...episode(), truncationReason: "boredom" }]) {
    assert.throws(() => decode(wrong))
  }
})
