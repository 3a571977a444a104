/* Answers asv's requests from scripts beside the pages: a page that is a file (file://) may load scripts, but no JSON. */
"use strict";

jQuery.ajaxTransport("+*", function (options) {
  const name = decodeURIComponent(options.url.split("?")[0]);
  const script = document.createElement("script");
  return {
    send(headers, complete) {
      // asv asks for its icon to learn whether the server is there.
      if (options.dataTypes[0] === "text") return complete(200, "OK", { text: "" });
      if (!window.asvData.includes(name)) return complete(404, "no such data");
      script.onload = () => {
        script.remove();
        complete(200, "OK", { json: script.data });
      };
      script.onerror = () => complete(404, "not there");
      script.src = options.url.replace(/\.json(?=\?|$)/, ".json.js");
      document.head.append(script);
    },
    abort() {
      script.onload = script.onerror = null;
    },
  };
});

/* A graph whose values lie far apart begins with asv's logarithmic axis; the reader may change that. */
let shown = null;

function beginLogarithmic() {
  const [name, query] = location.hash.slice(1).split("?");
  if (name !== shown && window.asvFarApart.includes(decodeURIComponent(name)) && !/(^|&)y-axis-scale=/.test(query)) {
    history.replaceState(null, "", `#${name}?${query ? `${query}&` : ""}y-axis-scale=log`);
  }
  shown = name;
}

// Before asv's own listener, which is added later.
addEventListener("hashchange", beginLogarithmic);
beginLogarithmic();
