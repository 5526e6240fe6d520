import { assert, describe, it } from "vitest"
import { changeLabels, most, mostLabelBytes } from "../../../src/run/manage/labels.ts"
import { labelsIn } from "../../../src/run/manage/labelsFile.ts"

describe("a change of labels", () => {
  it("keeps what it leaves out, and removes what is empty", () => {
    const labels = { title: "Baseline", note: "too slow", tags: ["a", "b"], archived: true }
    assert.deepEqual(changeLabels(labels, {}), { labels })
    assert.deepEqual(changeLabels(labels, { title: " ", note: "", removeTags: ["a", "b", "c"], archived: false }), {
      labels: {},
    })
  })

  it("sorts tags, and has each once", () => {
    assert.deepEqual(changeLabels({ tags: ["b"] }, { addTags: ["c", "a", "b"], removeTags: ["c"] }), {
      labels: { tags: ["a", "b"] },
    })
  })

  const refused = {
    "a title of several lines": { title: "a\nb" },
    "a long title": { title: "x".repeat(most.title + 1) },
    "a long note": { note: "x".repeat(most.note + 1) },
    "a note that moves the cursor": { note: "\u001b[2J" },
    "a tag of two words": { addTags: ["two words"] },
    "an empty tag": { addTags: [""] },
    "a tag with an operator": { addTags: ["a=b"] },
    "a long tag": { addTags: ["x".repeat(most.tag + 1)] },
    "too many tags": { addTags: Array.from({ length: most.tags + 1 }, (_, index) => `t${index}`) },
  }
  for (const [name, change] of Object.entries(refused)) {
    it(`is refused: ${name}`, () => assert.property(changeLabels({}, change), "problem"))
  }
})

describe("the file of labels", () => {
  it("is read only if all of it fits", () => {
    assert.deepEqual(labelsIn({ tags: ["a"], other: 1 }), { tags: ["a"] })
    for (const data of [null, [], { tags: "a" }, { tags: ["two words"] }, { title: "a\nb" }, { archived: "yes" }])
      assert.isUndefined(labelsIn(data))
  })

  it("may be as large as the largest labels", () => {
    const change = {
      title: "\u2028".repeat(most.title),
      note: "\t".repeat(most.note - 1).concat("x"),
      addTags: Array.from({ length: most.tags }, (_, index) => String(index).padStart(most.tag, "ÿ")),
    }
    const changed = changeLabels({}, { ...change, title: "ÿ".repeat(most.title) })
    assert.isAtMost(new TextEncoder().encode(JSON.stringify(changed, null, 2)).length, mostLabelBytes)
  })
})
