import DefaultTheme from "vitepress/theme"
import { h } from "vue"
import "./wide.css"

/** The command with which everybody begins, in a clone of the repository; it stands below the buttons of the home page. */
const begin = "npm ci && npx effect run examples/cartpole.ts"

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { "home-hero-info-after": () => h("pre", { class: "begin" }, begin) }),
}
