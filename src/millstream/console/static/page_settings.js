// Settings: every value that decides how the app runs, and where it came from.
import { get } from "./api.js";
import { card, empty, h, update } from "./dom.js";
import { number } from "./format.js";
import { table } from "./table.js";

export const title = () => "Settings";

export function open(main) {
  const list = h("div");
  main.append(list);
  return {
    refresh: async () => {
      const { settings } = await get("settings");
      update(list, settings, (all) => card("Settings", all.length ? number(all.length) : null, all.length ? table("Settings", [{ title: "setting", cell: (each) => h("code", {}, each.name) }, { title: "value", left: true, wrap: true, cell: (each) => each.value }, { title: "origin", left: true, cell: (each) => h("span", { class: "quiet" }, each.origin) }], all)
        : empty("Settings are known to the app only: open the console with it, `millstream console app.py`.")));
    },
  };
}
