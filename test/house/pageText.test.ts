import { assert, describe, it } from "vitest"
import { pageTexts } from "../../scripts/pageText.ts"
import * as pageText from "../../src/rl/env/ui/pageText.ts"

describe("src/rl/env/ui/pageText.ts", () => {
  it("has the text of the drawings as they are: `npm run page-text` writes it", () =>
    assert.deepEqual({ ...pageText }, pageTexts()))
})
