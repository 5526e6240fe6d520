/**
 * Makes the section of a run's page with what its owner noted about it. Where the user may change runs, it has a form for title,
 * tags and note, and buttons that archive and delete the run.
 */
import { changeRun } from "../data.js"
import { el } from "../parts/dom.js"
import { seededTitle, tagList } from "../parts/runTexts.js"

/** Makes the section. `state.canChange` tells whether the user may change runs. */
export const makeLabels = (state, path) => {
  const section = {
    state,
    path,
    /** The summary and the note of the run; undefined before the first ones are read. */
    run: undefined,
    note: undefined,
    /** The labels that the form was filled with, as JSON: the form keeps what the user is typing. */
    filled: undefined,
    title: el("input", { type: "text", id: "label-title", maxlength: "120", autocomplete: "off" }),
    tags: el("input", { type: "text", id: "label-tags", spellcheck: "false", autocomplete: "off" }),
    text: el("textarea", { id: "label-note", rows: "3", maxlength: "20000" }),
    status: el("p.quiet", { role: "status" }),
    archive: undefined,
    shown: el("div"),
    form: undefined,
    element: undefined,
  }
  section.archive = el("button.button", { type: "button", id: "archive", onclick: () => archive(section) })
  section.form = formOf(section)
  section.element = el("details.card.labels", el("summary", "Title, tags and note"), section.shown, section.form, section.status) // prettier-ignore
  return {
    element: section.element,
    show: ({ summary, note }) => show(section, summary, note),
  }
}

const formOf = (section) =>
  el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault()
        save(section)
      },
    },
    el("label.field", el("span", "title"), section.title),
    el("label.field", el("span", "tags"), section.tags),
    el("label.field", el("span", "note"), section.text),
    el(
      "div.controls",
      el("button.button", { type: "submit", id: "save-labels" }, "Save"),
      section.archive,
      el("button.button", { type: "button", id: "delete", onclick: () => remove(section) }, "Delete …"),
    ),
  )

const show = (section, run, note) => {
  section.note = note ?? ""
  const { title, tags, archived } = run
  const canChange = section.state.canChange === true
  const hasLabels = title !== null || tags.length > 0 || section.note !== "" || archived
  section.element.hidden = !canChange && !hasLabels
  // What there is to read is shown at first; the user opens an empty form.
  if (section.run === undefined) section.element.open = hasLabels
  section.run = run
  section.form.hidden = !canChange
  section.archive.textContent = archived ? "Show in lists again" : "Archive"
  section.shown.replaceChildren(
    ...(archived ? [el("p.quiet", "This run is archived: lists leave it out.")] : []),
    ...(canChange ? [] : [tagList(tags), el("p.note", section.note)]),
  )
  const labels = JSON.stringify([title, tags, section.note])
  if (labels === section.filled) return
  section.filled = labels
  section.title.value = title ?? ""
  section.tags.value = tags.join(" ")
  section.text.value = section.note
}

/** Sends a change, and tells the user how it went. Returns whether it was made. */
const send = async ({ path, status }, change, done) => {
  status.textContent = "…"
  try {
    await changeRun(path, change)
    status.textContent = done
    return true
  } catch (error) {
    status.textContent = error.message
    return false
  }
}

const save = (section) => {
  const { run, title, tags, text } = section
  const wanted = tags.value.split(/[\s,]+/).filter(Boolean)
  const removeTags = run.tags.filter((tag) => !wanted.includes(tag))
  return send(section, { labels: { title: title.value, note: text.value, addTags: wanted, removeTags } }, "Saved.")
}

const archive = (section) => {
  const archived = !section.run.archived
  return send(section, { labels: { archived } }, archived ? "Archived." : "In lists again.")
}

const remove = async (section) => {
  const { run, path } = section
  const count = run.runs === undefined ? "" : ` and its ${run.runs.length} runs`
  if (!confirm(`Delete ${seededTitle(run)}${count}?\n\n${path}\n\nIts folder is removed. This cannot be undone.`))
    return
  if (await send(section, { delete: true }, "Deleted.")) location.hash = "#/"
}
